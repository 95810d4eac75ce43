"""What runs left in their histories, counted exactly: events, workflow tasks, commands, bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

from benchmarks.load import PATHS, Path, run_id
from benchmarks.shape import WITH_OPTIONS, Order
from benchmarks.variants import DECLARED, PLAIN, VARIANTS, Variant


@dataclass(frozen=True)
class Trace:
    """One history, counted.

    Attributes:
        events: Every event by type, a scheduled activity with its type and id: equal traces have
            the same events, workflow tasks and commands in the same order.
        size: Bytes of all events.
        calls: Bytes of each activity's scheduled event, without what time and server put in.
    """

    events: tuple[str, ...]
    size: int
    calls: tuple[tuple[str, int], ...]

    @property
    def workflow_tasks(self) -> int:
        """How many workflow tasks were completed."""
        return self.events.count("WORKFLOW_TASK_COMPLETED")

    def until_failure(self) -> tuple[str, ...]:
        """Return the events up to the failure of an activity."""
        return self.events[: self.events.index("ACTIVITY_TASK_FAILED") + 1]


def trace(history: WorkflowHistory) -> Trace:
    """Count a history."""
    return Trace(
        events=tuple(map(_name, history.events)),
        size=sum(event.ByteSize() for event in history.events),
        calls=tuple(_calls(history)),
    )


def _name(event: HistoryEvent) -> str:
    name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")
    if event.event_type != EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        return name
    scheduled = event.activity_task_scheduled_event_attributes
    return f"{name} {scheduled.activity_type.name} {scheduled.activity_id}"


def _calls(history: WorkflowHistory) -> Iterator[tuple[str, int]]:
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            bare = HistoryEvent()
            bare.CopyFrom(event)
            bare.ClearField("event_time")
            bare.ClearField("task_id")
            name = event.activity_task_scheduled_event_attributes.activity_type.name
            yield name, bare.ByteSize()


Traces = dict[tuple[str, Path], list[Trace]]


async def of_orders(client: Client, samples: int) -> Traces:
    """Fetch some orders of the first repetition, by variant's name and path."""
    found: Traces = {}
    for variant in VARIANTS:
        for path in PATHS:
            handles = [
                client.get_workflow_handle(run_id(variant, path, "0000", number))
                for number in range(samples)
            ]
            fetched = await asyncio.gather(*(h.fetch_history() for h in handles))
            found[variant.name, path] = [trace(history) for history in fetched]
    return found


async def with_options(client: Client) -> tuple[Trace, Trace]:
    """Run a call whose contract has options, without the plugin and with it."""
    return await _with_options(client, PLAIN), await _with_options(client, DECLARED)


async def _with_options(client: Client, variant: Variant) -> Trace:
    handle = await client.start_workflow(
        WITH_OPTIONS,
        Order("options"),
        id=f"{variant.letter}-options",
        task_queue=variant.queue,
    )
    await handle.result()
    return trace(await handle.fetch_history())


def added_bytes(plain: Trace, declared: Trace) -> dict[str, int]:
    """Tell how much longer each named call's scheduled event is for being recorded."""
    added: dict[str, int] = {}
    for (name, before), (other, after) in zip(plain.calls, declared.calls, strict=False):
        if name == other:
            added[name] = max(added.get(name, 0), after - before)
    return added
