"""Follows the histories of a program's runs, to know when nothing moves by itself any more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

from tests.model.stage import Stage

_PREFIX = "EVENT_TYPE_"
_ACTIVITY_ENDS = tuple(
    f"ACTIVITY_TASK_{end}" for end in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED")
)
_CHILD_ENDS = tuple(
    f"CHILD_WORKFLOW_EXECUTION_{end}"
    for end in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED", "TERMINATED")
)
_ENDS = tuple(
    f"WORKFLOW_EXECUTION_{end}"
    for end in ("COMPLETED", "FAILED", "TIMED_OUT", "CANCELED", "TERMINATED", "CONTINUED_AS_NEW")
)


def attributes(event: HistoryEvent) -> Any:
    """The attributes of an event."""
    return getattr(event, event.WhichOneof("attributes") or "")


def name_of(event: HistoryEvent) -> str:
    return EventType.Name(event.event_type).removeprefix(_PREFIX)


@dataclass
class Watch:
    """One run, as its history shows it so far."""

    workflow_id: str
    run_id: str
    events: list[HistoryEvent] = field(default_factory=list)
    begun: bool = False
    task: bool = False
    activities: dict[int, str] = field(default_factory=dict)
    cancelling: set[int] = field(default_factory=set)
    children: dict[int, str] = field(default_factory=dict)
    starting: set[int] = field(default_factory=set)
    in_transit: int = 0
    cancelled: bool = False
    signals: int = 0
    updates: int = 0
    closed: str = ""
    successor: str = ""
    expects_cancel: bool = False
    signals_expected: int = 0
    updates_expected: int = 0
    terminated: bool = False

    def apply(self, event: HistoryEvent) -> str:
        """Apply an event; return its name."""
        name, its = name_of(event), attributes(event)
        # A long poll may show a workflow task that is not in the history yet, and shows it again.
        del self.events[event.event_id - 1 :]
        self.events.append(event)
        if name in ("WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"):
            self.task = True
        elif name == "WORKFLOW_TASK_COMPLETED":
            self.task, self.begun = False, True
        elif name == "ACTIVITY_TASK_SCHEDULED":
            self.activities[event.event_id] = its.activity_id
        elif name == "ACTIVITY_TASK_CANCEL_REQUESTED":
            self.cancelling.add(its.scheduled_event_id)
        elif name in _ACTIVITY_ENDS:
            self.activities.pop(its.scheduled_event_id, None)
        elif name == "START_CHILD_WORKFLOW_EXECUTION_INITIATED":
            self.children[event.event_id] = its.workflow_id
            self.starting.add(event.event_id)
        elif name == "CHILD_WORKFLOW_EXECUTION_STARTED":
            self.starting.discard(its.initiated_event_id)
        elif name in _CHILD_ENDS:
            self.children.pop(its.initiated_event_id, None)
        elif name == "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED":
            self.in_transit += 1
        elif name in (
            "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED",
            "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED",
        ):
            self.in_transit -= 1
        elif name == "WORKFLOW_EXECUTION_CANCEL_REQUESTED":
            self.cancelled = True
        elif name == "WORKFLOW_EXECUTION_SIGNALED":
            self.signals += 1
        elif name == "WORKFLOW_EXECUTION_UPDATE_ACCEPTED":
            self.updates += 1
        elif name in _ENDS:
            self.closed = name
            self.successor = getattr(its, "new_execution_run_id", "")
        return name

    def caught_up(self) -> bool:
        """Whether all that the driver sent has been seen, and no workflow task is due."""
        return (
            not self.task
            and not self.in_transit
            and not self.starting
            and self.signals >= self.signals_expected
            and self.updates >= self.updates_expected
            and (self.cancelled or not self.expects_cancel)
        )


class Family:
    """The runs of one program: its root, what that continued as, their children."""

    def __init__(self, client: Client, stage: Stage) -> None:
        self._client = client
        self._stage = stage
        self._tasks: list[asyncio.Task[None]] = []
        self.watches: list[Watch] = []
        self.faults: list[str] = []

    @property
    def root(self) -> Watch:
        """The newest run of the root."""
        return [w for w in self.watches if w.workflow_id == self._stage.root][-1]

    @property
    def closed(self) -> bool:
        """Whether all runs are closed."""
        return all(watch.closed for watch in self.watches)

    def follow(self, workflow_id: str, run_id: str) -> None:
        """Start to watch a run."""
        watch = Watch(workflow_id, run_id)
        self.watches.append(watch)
        self._tasks.append(asyncio.create_task(self._follow(watch)))

    async def _follow(self, watch: Watch) -> None:
        handle = self._client.get_workflow_handle(watch.workflow_id, run_id=watch.run_id)
        async for event in handle.fetch_history_events(wait_new_event=True):
            name, its = watch.apply(event), attributes(event)
            if name == "WORKFLOW_TASK_FAILED":
                self.faults.append(f"workflow task failed: {its.failure.message}")
            elif name == "CHILD_WORKFLOW_EXECUTION_STARTED":
                self.follow(its.workflow_execution.workflow_id, its.workflow_execution.run_id)
            elif name == "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED":
                self._expect_cancel(its.workflow_execution.workflow_id)
            elif watch.closed:
                for child in watch.children.values():
                    self._expect_cancel(child)
                if watch.successor:
                    self.follow(watch.workflow_id, watch.successor)
            self._stage.moved.set()

    def _expect_cancel(self, workflow_id: str) -> None:
        for watch in self.watches:
            if watch.workflow_id == workflow_id:
                watch.expects_cancel = True

    @property
    def quiet(self) -> bool:
        """Whether nothing moves by itself: all runs that are open wait for the outside."""
        return all(self._rests(watch) for watch in self.watches if not watch.closed)

    def _rests(self, watch: Watch) -> bool:
        return (
            watch.begun
            and watch.caught_up()
            and all((watch.run_id, a) in self._stage.waiting for a in watch.activities.values())
            and not any(self._in_motion(child) for child in watch.children.values())
        )

    def abandoned(self) -> list[tuple[str, str]]:
        """The activities that wait although their run is closed."""
        closed = {watch.run_id for watch in self.watches if watch.closed}
        return [key for key in self._stage.waiting if key[0] in closed]

    def _in_motion(self, workflow_id: str) -> bool:
        """Whether a child that its parent waits for is not known yet, or is closed already."""
        known = [w for w in self.watches if w.workflow_id == workflow_id]
        return not known or bool(known[-1].closed)

    def asked_to_cancel(self, run_id: str, activity_id: str) -> bool:
        """Whether a run has asked to cancel an activity."""
        return any(
            watch.activities.get(event) == activity_id
            for watch in self.watches
            if watch.run_id == run_id
            for event in watch.cancelling
        )

    def describe(self) -> str:
        """Say what each run waits for."""
        return "; ".join(
            f"{w.workflow_id}: {w.closed or 'open'}, task={w.task}, activities={w.activities}, "
            f"children={w.children}, last={name_of(w.events[-1]) if w.events else None}"
            for w in self.watches
        )

    async def histories(self) -> list[WorkflowHistory]:
        """The histories of all runs, when all are closed."""
        await asyncio.wait_for(asyncio.gather(*self._tasks), 20)
        return [WorkflowHistory(w.workflow_id, w.events) for w in self.watches]

    async def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
