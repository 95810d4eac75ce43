"""Runs workflows on a real server and looks at what they left behind."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import (
    Client,
    Plugin,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistory,
)
from temporalio.converter import DataConverter
from temporalio.worker import Replayer, Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agboss_temporal import CompensationPlugin, CompensationReport
from agboss_temporal.core import wire
from tests.support import agreement
from tests.support.acts import ACTIVITIES, WORLD

Handle = WorkflowHandle[Any, Any]


def sandbox() -> WorkflowRunner:
    """Return the sandbox without what it would import again, for nothing, for every run."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(
            "tests.support.acts", "tests.support.calls"
        )
    )


@dataclass
class Done:
    """A closed run: how it closed, what it did outside, what it says of itself.

    ``error`` is the error that the server recorded for the run, without the client's wrapper.
    """

    status: str
    result: Any
    error: BaseException | None
    world: list[str]
    report: CompensationReport
    history: WorkflowHistory

    @property
    def verdicts(self) -> list[tuple[str, str | None]]:
        return [(e.action, e.verdict) for e in self.report.entries]

    @property
    def workflow_id(self) -> str:
        return self.history.events[0].workflow_execution_started_event_attributes.workflow_id

    @property
    def events(self) -> list[str]:
        return names(self.history.events)


class Harness:
    """One client with the plugin, the workers made from it, and the runs that they ran.

    ``plugins`` are those of the client, if that is not only the one. ``agrees`` says whether a
    replay's ledger is to be compared with the one from history.
    """

    def __init__(
        self,
        client: Client,
        *,
        cache: int = 1000,
        plugin: CompensationPlugin | None = None,
        plugins: Sequence[Plugin] | None = None,
        data_converter: DataConverter | None = None,
    ) -> None:
        self.cache = cache
        self.agrees = True
        self.plugin = plugin or CompensationPlugin()
        config = client.config()
        config["plugins"] = [self.plugin] if plugins is None else plugins
        if data_converter is not None:
            config["data_converter"] = data_converter
        self.plain = client
        self.client = Client(**config)
        self._runs: list[tuple[Handle, Sequence[type]]] = []
        self._queues: dict[str, Sequence[type]] = {}

    def with_(
        self,
        *,
        plugin: CompensationPlugin | None = None,
        data_converter: DataConverter | None = None,
    ) -> Harness:
        """Return a harness on the same server with another plugin or converter."""
        other = Harness(
            self.plain,
            cache=self.cache,
            plugin=plugin or self.plugin,
            data_converter=data_converter,
        )
        other._runs = self._runs
        return other

    @asynccontextmanager
    async def worker(
        self,
        workflows: Sequence[type] = (),
        activities: Sequence[Callable[..., Any]] | None = None,
        *,
        queue: str | None = None,
        flags: Sequence[Any] = (),
        client: Client | None = None,
        **options: Any,
    ) -> AsyncIterator[str]:
        """Run a worker; yield its task queue."""
        queue = queue or f"q-{uuid.uuid4().hex[:10]}"
        if workflows:
            self._queues[queue] = workflows
            options.setdefault("max_cached_workflows", self.cache)
            options.setdefault("workflow_runner", sandbox())
        worker = Worker(
            client or self.client,
            task_queue=queue,
            workflows=workflows,
            activities=ACTIVITIES if activities is None else activities,
            **options,
        )
        for flag in flags:
            worker._set_default_workflow_logic_flag(flag, enabled=True)
        async with worker:
            yield queue

    async def start(self, queue: str, run: Any, *args: Any, **options: Any) -> Handle:
        """Start a run; its history is replayed at the end of the test."""
        options.setdefault("id", f"w-{uuid.uuid4().hex[:12]}")
        handle: Handle = await self.client.start_workflow(
            run, args=args, task_queue=queue, **options
        )
        self._runs.append((handle, self._queues.get(queue, ())))
        return handle

    async def finish(self, handle: Handle, timeout: float = 30) -> Done:
        """Wait until a run is closed and describe it. Its worker must be running."""
        result, error = None, None
        try:
            result = await asyncio.wait_for(handle.result(), timeout)
        except WorkflowFailureError as err:
            error = err.cause
        return await self.describe(handle, result, error)

    async def describe(
        self, handle: Handle, result: Any = None, error: BaseException | None = None
    ) -> Done:
        """Describe a run as it is now."""
        description = await handle.describe()
        assert description.status is not None
        report = await handle.query("agboss.compensation", result_type=CompensationReport)
        return Done(
            status=description.status.name,
            result=result,
            error=error,
            world=WORLD.of(handle.id),
            report=report,
            history=await handle.fetch_history(),
        )

    async def run(
        self,
        workflow: type,
        *args: Any,
        activities: Sequence[Callable[..., Any]] | None = None,
        meanwhile: Callable[[Handle], Awaitable[None]] | None = None,
        **options: Any,
    ) -> Done:
        """Run a workflow on a worker of its own to its end.

        Args:
            workflow: The class; its ``run`` is started.
            args: Its arguments.
            activities: What the worker registers.
            meanwhile: Acts on the running workflow.
            options: Options of the worker.
        """
        async with self.worker([workflow], activities, **options) as queue:
            handle = await self.start(queue, workflow.run, *args)  # type: ignore[attr-defined]
            if meanwhile is not None:
                await meanwhile(handle)
            return await self.finish(handle)

    async def replay_all(self) -> None:
        """Replay the history of every run that was started, and compare it with its own ledger."""
        for handle, workflows in self._runs:
            if not workflows:
                continue
            replayer = Replayer(
                workflows=workflows,
                plugins=[self.plugin],
                data_converter=self.client.data_converter,
                workflow_runner=sandbox(),
            )
            history = await handle.fetch_history()
            with agreement.watching() as seen:
                await replayer.replay_workflow(history)
            if self.agrees:
                ledger = await agreement.check(history, seen, self.client.data_converter)
                if ledger is not None:
                    agreement.check_world(ledger)


def names(events: Sequence[HistoryEvent]) -> list[str]:
    """Name the events of a history, as in ``ActivityTaskScheduled``."""
    return [
        "".join(w.capitalize() for w in EventType.Name(e.event_type).split("_")[2:]) for e in events
    ]


async def events_of(handle: Handle) -> list[HistoryEvent]:
    return [e async for e in handle.fetch_history_events()]


async def until(check: Callable[[], Awaitable[bool]], timeout: float = 20) -> None:
    """Wait until something is true, asking again and again."""
    end = asyncio.get_running_loop().time() + timeout
    while not await check():
        assert asyncio.get_running_loop().time() < end, "waited in vain"
        await asyncio.sleep(0.02)


async def until_event(handle: Handle, name: str, count: int = 1) -> None:
    """Wait until a run's history has so many events of a name."""

    async def there() -> bool:
        return names(await events_of(handle)).count(name) >= count

    await until(there)


async def until_observed(
    handle: Handle, count: int = 1, name: str = "ActivityTaskCompleted"
) -> None:
    """Wait until a run's code has seen so many events of a name."""

    async def there() -> bool:
        found = names(await events_of(handle))
        if found.count(name) < count:
            return False
        last = len(found) - 1 - found[::-1].index(name)
        return "WorkflowTaskCompleted" in found[last:]

    await until(there)


async def until_scheduled(handle: Handle, activity: str, count: int = 1) -> None:
    """Wait until a run has scheduled an activity so many times."""

    async def there() -> bool:
        return scheduled(await events_of(handle)).count(activity) >= count

    await until(there)


async def until_did(handle: Handle, effect: str) -> None:
    """Wait until an activity of a run has really done something."""

    async def there() -> bool:
        return effect in WORLD.of(handle.id)

    await until(there)


def records(done: Done, activity: str) -> list[wire.CallRecord]:
    """Read the compensation headers of a run's calls of an activity, in order."""
    return [
        wire.decode(e.activity_task_scheduled_event_attributes.header.fields[wire.HEADER].data)
        for e in done.history.events
        if e.activity_task_scheduled_event_attributes.activity_type.name == activity
    ]


def scheduled(events: Sequence[HistoryEvent]) -> list[str]:
    """Name the activities that a history schedules, in order."""
    return [
        e.activity_task_scheduled_event_attributes.activity_type.name
        for e in events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
