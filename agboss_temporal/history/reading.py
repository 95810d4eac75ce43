"""Reading the facts out of a history's events, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads, Priority
from temporalio.api.enums.v1 import EventType, ParentClosePolicy, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from agboss_temporal.core import wire
from agboss_temporal.core.errors import HistoryError, IllegalTransitionError, RecordError
from agboss_temporal.core.facts import Call, Origin
from agboss_temporal.core.fold import Fold
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.history import failures
from agboss_temporal.history.contracts import Declared, Recorded, table_of
from agboss_temporal.history.payloads import Plain

SEALED_UNIT: Final = "agboss-sealed"
LOCAL_ACTIVITY: Final = "core_local_activity"

_E = EventType
_POLICIES: Final = {
    ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON: "abandon",
    ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL: "request_cancel",
}


async def read(
    history: WorkflowHistory | Iterable[HistoryEvent],
    data_converter: DataConverter | None,
    contracts: Iterable[Declared] | None,
) -> RunLedger:
    """Fold a history into its ledger."""
    events = list(history.events if isinstance(history, WorkflowHistory) else history)
    _check(events)
    table = table_of(contracts)
    plain = await Plain.of(events, data_converter, judged=table)
    started = events[0].workflow_execution_started_event_attributes
    workflow_id = history.workflow_id if isinstance(history, WorkflowHistory) else ""
    origin = Origin(
        workflow_id=started.workflow_id or workflow_id,
        workflow_type=started.workflow_type.name,
        run_id=started.original_execution_run_id,
        task_queue=started.task_queue.name,
    )
    reader = _Reader(Fold(origin, table), plain)
    for event in events:
        reader.read(event)
    return reader.fold.result(events[-1].event_id)


def _check(events: Sequence[HistoryEvent]) -> None:
    """Refuse what is not a whole history."""
    if not events:
        raise HistoryError(0, "the history has no events")
    if events[0].event_type != _E.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
        raise HistoryError(0, "the history does not begin with the start of a run")
    for expected, event in enumerate(events, 1):
        if event.event_id != expected:
            raise HistoryError(event.event_id, f"event {expected} should stand here")


class _Reader:
    def __init__(self, fold: Fold, plain: Plain) -> None:
        self.fold = fold
        self._plain = plain
        self._recorded = Recorded()
        self._started: dict[int, HistoryEvent] = {}
        self._closed = False
        self._handlers: Mapping[int, Callable[[HistoryEvent], None]] = {
            _E.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: self._run_started,
            _E.EVENT_TYPE_WORKFLOW_TASK_STARTED: self._task_started,
            _E.EVENT_TYPE_WORKFLOW_TASK_COMPLETED: self._task_completed,
            _E.EVENT_TYPE_WORKFLOW_TASK_FAILED: self._task_failed,
            _E.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT: self._task_timed_out,
            _E.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: self._activity_scheduled,
            _E.EVENT_TYPE_ACTIVITY_TASK_STARTED: self._activity_started,
            _E.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: self._activity_completed,
            _E.EVENT_TYPE_ACTIVITY_TASK_FAILED: self._activity_failed,
            _E.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: self._activity_timed_out,
            _E.EVENT_TYPE_ACTIVITY_TASK_CANCELED: self._activity_cancelled,
        }

    def read(self, event: HistoryEvent) -> None:
        """Read one event; those that say nothing about effects are passed over."""
        if self._closed:
            raise HistoryError(event.event_id, "it comes after the run was closed")
        handler = self._handlers.get(event.event_type)
        if handler is None:
            return
        try:
            handler(event)
        except (RecordError, IllegalTransitionError) as err:
            raise HistoryError(event.event_id, str(err)) from err

    def _run_started(self, event: HistoryEvent) -> None:
        pass

    def _task_started(self, event: HistoryEvent) -> None:
        self._started[event.event_id] = event

    def _task_completed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_task_completed_event_attributes
        started = self._started.pop(attributes.started_event_id, event)
        self.fold.task_completed(event.event_id, _workflow_time(started.event_time))

    def _task_failed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_task_failed_event_attributes
        reset = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
        new = attributes.new_run_id if attributes.cause == reset else None
        self.fold.task_failed(event.event_id, new)

    def _task_timed_out(self, event: HistoryEvent) -> None:
        self.fold.task_failed(event.event_id)

    def _activity_scheduled(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_scheduled_event_attributes
        call = Call(
            event.event_id,
            "activity",
            attributes.activity_type.name,
            call_id=attributes.activity_id,
            task_queue=attributes.task_queue.name,
            args=attributes.input.payloads,
            priority=_priority(attributes.priority),
            single_attempt=attributes.retry_policy.maximum_attempts == 1,
        )
        self._describe(call, attributes.header.fields.get(wire.HEADER))
        self.fold.scheduled(call)

    def _activity_started(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_started_event_attributes
        self.fold.started(event.event_id, attributes.scheduled_event_id, attributes.attempt)

    def _activity_completed(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_completed_event_attributes
        self.fold.completed(
            event.event_id,
            attributes.scheduled_event_id,
            _time(event.event_time),
            _first(attributes.result),
        )

    def _activity_failed(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_failed_event_attributes
        self._failed(event, attributes.scheduled_event_id, attributes.failure)

    def _activity_timed_out(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_timed_out_event_attributes
        self._failed(event, attributes.scheduled_event_id, attributes.failure)

    def _activity_cancelled(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_canceled_event_attributes
        self.fold.failed(
            event.event_id,
            attributes.scheduled_event_id,
            _time(event.event_time),
            failures.CANCELLED,
            "cancelled",
        )

    def _failed(self, event: HistoryEvent, of: int, failure: Failure) -> None:
        found = failures.failure_of(failure)
        self.fold.failed(event.event_id, of, _time(event.event_time), found, "failed")

    def _describe(self, call: Call, header: Payload | None) -> None:
        if header is None:
            return
        data, unreadable = self._plain.header(call.event_id, header)
        if data is None:
            call.unreadable = unreadable
            return
        call.record = wire.decode(data)
        call.contract = self._recorded.contract(call.kind, call.name, call.record)


def _first(result: Payloads) -> Payload | None:
    return result.payloads[0] if result.payloads else None


def _priority(priority: Priority) -> tuple[int, str, float] | None:
    if not (priority.priority_key or priority.fairness_key or priority.fairness_weight):
        return None
    return (priority.priority_key, priority.fairness_key, priority.fairness_weight)


def _time(time: Timestamp) -> datetime:
    return time.ToDatetime(tzinfo=UTC)


def _workflow_time(time: Timestamp) -> datetime:
    """Return a time as workflow code reads it: by way of a float."""
    return datetime.fromtimestamp(time.ToNanoseconds() / 1e9, tz=UTC)
