"""What a history says of a run, read without the library."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent

NO_EFFECT = {"debit": {"Refused"}}
"""Errors that the contracts declare to prove that nothing was done."""

UNDONE_WHEN_UNKNOWN = {"book", "pack"}

UNCOMMITTED = "UncommittedActionError"
"""What a run fails with that returned while the committer of an action was missing."""

_OUTCOMES = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: "completed",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "raised",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "timed_out",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "cancelled",
}

_HARMLESS = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
_SLOW_MACHINE = "TMPRL1101"


@dataclass
class Called:
    """An activity of a run.

    Attributes:
        id: Its activity id.
        name: Name of the activity.
        header: What the library's header says.
        item: The item that it was called for, if it is an action.
        scheduled: Id of the event that scheduled it.
        settled: Id of the event that settled it, 0 while there is none.
        outcome: How it settled.
        error: Type of the error that it settled with.
    """

    id: str
    name: str
    header: dict[str, Any]
    item: str
    scheduled: int
    settled: int = 0
    outcome: str = ""
    error: str = ""

    @property
    def undoes(self) -> str | None:
        """Key of the entry that it undoes."""
        found: str | None = self.header.get("z") or self.header.get("x")
        return found


@dataclass
class Entry:
    """An action of a run and what became of it: ``open``, ``in_doubt``, ``sealed``, ``undone``."""

    key: str
    call: Called
    state: str = "running"


@dataclass
class Record:
    """A run."""

    calls: list[Called] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    task_failures: list[str] = field(default_factory=list)
    cancel_requested: bool = False
    ending: str = ""
    failure: str = ""

    def unwind(self) -> list[Called]:
        """List the undos of unwinds, as they were scheduled."""
        return [call for call in self.calls if "z" in call.header]


def read(events: Iterable[HistoryEvent]) -> Record:
    """Read a history."""
    record = Record()
    open_calls: dict[int, Called] = {}
    for event in events:
        attributes: Any = getattr(event, event.WhichOneof("attributes") or "")
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            open_calls[event.event_id] = _scheduled(record, event.event_id, attributes)
        elif event.event_type in _OUTCOMES:
            call = open_calls.pop(attributes.scheduled_event_id)
            call.settled = event.event_id
            call.outcome = _OUTCOMES[event.event_type]
            call.error = _error_type(getattr(attributes, "failure", Failure()))
            _settled(record, call)
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            message = attributes.failure.message
            if attributes.cause != _HARMLESS and _SLOW_MACHINE not in message:
                record.task_failures.append(message)
        else:
            _noted(record, event.event_type, attributes)
    return record


def _scheduled(record: Record, event_id: int, attributes: Any) -> Called:
    header = attributes.header.fields.get("agboss-compensation")
    given = [json.loads(payload.data) for payload in attributes.input.payloads]
    call = Called(
        id=attributes.activity_id,
        name=attributes.activity_type.name,
        header=json.loads(header.data) if header else {},
        item=given[0].get("item", "") if given else "",
        scheduled=event_id,
    )
    record.calls.append(call)
    key = call.header.get("a")
    if key is not None:
        record.entries[key] = Entry(key, call)
    return call


def _settled(record: Record, call: Called) -> None:
    entry = record.entries.get(call.header.get("a", ""))
    if entry is not None:
        known = call.error in NO_EFFECT.get(call.name, ())
        done = call.outcome == "completed"
        entry.state = "open" if done else "no_effect" if known else "in_doubt"
    if call.outcome != "completed":
        return
    if "s" in call.header:
        for each in record.entries.values():
            if each.call.header.get("c") == call.name and each.state in ("open", "in_doubt"):
                each.state = "sealed"
    if call.undoes:
        record.entries[call.undoes].state = "undone"


def _noted(record: Record, kind: Any, attributes: Any) -> None:
    name = EventType.Name(kind).removeprefix("EVENT_TYPE_WORKFLOW_EXECUTION_")
    if name == "CANCEL_REQUESTED":
        record.cancel_requested = True
    elif name in ("COMPLETED", "FAILED", "CANCELED", "TERMINATED", "TIMED_OUT", "CONTINUED_AS_NEW"):
        record.ending = name
        record.failure = _error_type(getattr(attributes, "failure", Failure()))
        if name == "COMPLETED" or record.failure == UNCOMMITTED:
            for entry in record.entries.values():
                if entry.state == "open" and "c" not in entry.call.header:
                    entry.state = "sealed"


def _error_type(failure: Failure) -> str:
    """Return the type of the innermost failure."""
    while failure.HasField("cause"):
        failure = failure.cause
    if failure.HasField("timeout_failure_info"):
        return "Timeout"
    return failure.application_failure_info.type
