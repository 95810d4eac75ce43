"""Tells what happens in a run while it happens, from its history and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHandle

CANCEL: Final = "cancel of the order"
ORDER: Final = "the order"

_ACTIVITY_ENDS: Final = {
    "activity_task_completed": "done",
    "activity_task_failed": "failed",
    "activity_task_timed_out": "timed out",
    "activity_task_canceled": "cancelled",
}
_RUN_ENDS: Final = {
    "workflow_execution_completed": "COMPLETED",
    "workflow_execution_failed": "FAILED",
    "workflow_execution_canceled": "CANCELED",
    "workflow_execution_terminated": "TERMINATED",
    "workflow_execution_timed_out": "TIMED_OUT",
}


@dataclass(frozen=True)
class Step:
    """One line of a run's story.

    Attributes:
        name: What it tells of: an activity, an undo, or the order itself.
        outcome: What became of it.
        remark: What else is worth saying.
    """

    name: str
    outcome: str
    remark: str = ""


class Trail:
    """The steps of one run as they happen, until it is closed; each is told once."""

    def __init__(self, handle: WorkflowHandle[Any, Any]) -> None:
        self.handle = handle
        self._events = handle.fetch_history_events(wait_new_event=True)
        self._names: dict[int, str] = {}
        self._retries: dict[int, str] = {}

    def __aiter__(self) -> Trail:
        return self

    async def __anext__(self) -> Step:
        async for event in self._events:
            step = self._read(event)
            if step is not None:
                return step
        raise StopAsyncIteration

    def _read(self, event: HistoryEvent) -> Step | None:
        kind = (event.WhichOneof("attributes") or "").removesuffix("_event_attributes")
        about: Any = getattr(event, f"{kind}_event_attributes")
        if kind == "activity_task_scheduled":
            summary = event.user_metadata.summary.data
            self._names[event.event_id] = (
                json.loads(summary) if summary else about.activity_type.name
            )
        elif kind == "activity_task_started":
            self._retries[about.scheduled_event_id] = _retry(about)
        elif kind == "workflow_execution_cancel_requested":
            return Step(CANCEL, "requested")
        elif kind in _ACTIVITY_ENDS:
            at = about.scheduled_event_id
            remarks = (_failure(about), self._retries.get(at, ""))
            return Step(self._names[at], _ACTIVITY_ENDS[kind], "; ".join(filter(None, remarks)))
        elif kind in _RUN_ENDS:
            return Step(ORDER, _RUN_ENDS[kind], _failure(about))
        return None


def _retry(started: Any) -> str:
    """Say who made a repeated attempt, and why it was needed."""
    if started.attempt < 2:
        return ""
    worker = started.identity.partition("@")[0]
    before = _reason(started.last_failure)
    return f"attempt {started.attempt}, worker {worker} (before: {before})"


def _failure(about: Any) -> str:
    return _reason(about.failure) if hasattr(about, "failure") else ""


def _reason(failure: Failure) -> str:
    """Say what a failure is; one of an activity is what the activity raised."""
    if failure.HasField("activity_failure_info"):
        return _reason(failure.cause)
    if failure.HasField("timeout_failure_info"):
        name = TimeoutType.Name(failure.timeout_failure_info.timeout_type)
        return name.removeprefix("TIMEOUT_TYPE_").lower().replace("_", "-") + " timeout"
    kind = failure.application_failure_info.type
    return f"{kind}: {failure.message}" if kind else failure.message
