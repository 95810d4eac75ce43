"""What recording costs on the way forward: nothing but a header on named calls (R1, R5)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowFailureError

from tests.integration import wiring_flows as flows
from tests.support.acts import ACTIVITIES
from tests.support.harness import Done, Handle, Harness, names

COMMANDS = {
    "ActivityTaskScheduled",
    "TimerStarted",
    "MarkerRecorded",
    "StartChildWorkflowExecutionInitiated",
    "UpsertWorkflowSearchAttributes",
    "WorkflowPropertiesModified",
    "WorkflowExecutionCompleted",
    "WorkflowExecutionFailed",
}
NAMED = ("reserve", "charge", "ship")


async def pair(
    harness: Harness, plain: Sequence[type], recorded: Sequence[type], *args: Any
) -> Any:
    """Run a workflow without and then with the plugin, under the same id on the same queue."""
    queue, run_id = f"pair-{uuid.uuid4().hex[:8]}", f"pair-{uuid.uuid4().hex[:8]}"
    found = []
    for classes, client in ((plain, harness.plain), (recorded, harness.client)):
        async with harness.worker(classes, ACTIVITIES, queue=queue, client=client):
            handle: Handle = await client.start_workflow(
                classes[0].run,  # type: ignore[attr-defined]
                args=args,
                id=run_id,
                task_queue=queue,
            )
            with suppress(WorkflowFailureError):
                await handle.result()
            found.append(await handle.fetch_history())
    return found


def commands(events: list[HistoryEvent]) -> list[bytes]:
    """Serialize the events that commands made, without what differs from run to run."""
    found = []
    for event, name in zip(events, names(events), strict=True):
        if name in COMMANDS:
            copy = HistoryEvent()
            copy.CopyFrom(event)
            copy.ClearField("event_time")
            copy.ClearField("task_id")
            marker = copy.marker_recorded_event_attributes
            if copy.HasField("marker_recorded_event_attributes"):
                marker.ClearField("details")
            found.append(copy.SerializeToString(deterministic=True))
    return found


async def test_e7_r5_without_named_calls_the_commands_are_the_same_bytes(
    harness: Harness,
) -> None:
    family = [flows.Unnamed, flows.UnnamedKid]
    plain, recorded = await pair(harness, family, family)
    assert names(plain.events) == names(recorded.events)
    assert commands(plain.events) == commands(recorded.events)
    assert len(commands(plain.events)) > 8


async def test_r1_events_tasks_and_command_order_are_the_same(harness: Harness) -> None:
    plain, recorded = await pair(harness, [flows.PlainNamed], [flows.RecordedNamed], "ok")
    assert names(plain.events) == names(recorded.events)
    assert _calls(plain.events) == _calls(recorded.events)
    grown = sum(e.ByteSize() for e in recorded.events) - sum(e.ByteSize() for e in plain.events)
    calls = sum(1 for name in _calls(plain.events) if name in NAMED)
    assert 0 < grown <= 120 * calls
    assert all(n <= 120 for n in _header_bytes(recorded.events))


async def test_a_failing_run_has_two_more_events_and_its_undos(harness: Harness) -> None:
    plain, recorded = await pair(harness, [flows.PlainNamed], [flows.RecordedNamed], "fail")
    undos = [n for n in _calls(recorded.events) if n in ("refund", "release")]
    assert undos == ["refund", "refund", "refund", "release"]
    added = names(recorded.events)
    for name in names(plain.events):
        added.remove(name)
    assert added.count("MarkerRecorded") == 1
    assert added.count("UpsertWorkflowSearchAttributes") == 1
    per_undo = ["ActivityTaskScheduled", "ActivityTaskStarted", "ActivityTaskCompleted"]
    for name in per_undo:
        assert added.count(name) == len(undos)
    others = {n for n in added if not n.startswith(("ActivityTask", "WorkflowTask"))}
    assert others == {"MarkerRecorded", "UpsertWorkflowSearchAttributes"}


async def test_a_run_with_nothing_to_undo_gets_no_marker(harness: Harness) -> None:
    done: Done = await harness.run(flows.RecordedNamed, "ok")
    assert "MarkerRecorded" not in done.events


def _calls(events: list[HistoryEvent]) -> list[str]:
    return [
        e.activity_task_scheduled_event_attributes.activity_type.name
        for e in events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]


def _header_bytes(events: list[HistoryEvent]) -> list[int]:
    """Measure how many bytes the header adds to each named call."""
    found = []
    for event in events:
        if _calls([event]) and _calls([event])[0] in NAMED:
            bare = HistoryEvent()
            bare.CopyFrom(event)
            bare.activity_task_scheduled_event_attributes.ClearField("header")
            found.append(event.ByteSize() - bare.ByteSize())
    assert found
    return found
