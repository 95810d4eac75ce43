"""Reading the events of calls: activities and child workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads, Priority
from temporalio.api.enums.v1 import EventType, ParentClosePolicy, TimeoutType
from temporalio.api.history.v1 import HistoryEvent

from agboss_temporal.core import outcome, wire
from agboss_temporal.core.contract import Kind
from agboss_temporal.core.facts import About, Call
from agboss_temporal.core.fold import Fold
from agboss_temporal.history import failures, plans
from agboss_temporal.history.contracts import Recorded
from agboss_temporal.history.payloads import Plain

Handlers: TypeAlias = Mapping[int, Callable[[HistoryEvent], None]]

_E = EventType
_CLOSE_POLICIES: Final = {
    ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE: "terminate",
    ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON: "abandon",
    ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL: "request_cancel",
}


class CallReader:
    """Feeds a fold with what events say of calls.

    Args:
        fold: The fold.
        plain: Payloads without codec.
        judges: Whether calls without a record are judged, which takes their payloads.
    """

    def __init__(self, fold: Fold, plain: Plain, *, judges: bool) -> None:
        self._fold = fold
        self._plain = plain
        self._judges = judges
        self._recorded = Recorded()
        self._handed: set[int] = set()
        self.handlers: Handlers = {
            _E.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: self._activity_scheduled,
            _E.EVENT_TYPE_ACTIVITY_TASK_STARTED: self._activity_started,
            _E.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: self._activity_completed,
            _E.EVENT_TYPE_ACTIVITY_TASK_FAILED: self._activity_failed,
            _E.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: self._activity_timed_out,
            _E.EVENT_TYPE_ACTIVITY_TASK_CANCELED: self._activity_cancelled,
            _E.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED: self._activity_cancel_requested,
            _E.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: self._child_initiated,
            _E.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: self._child_not_started,
            _E.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED: self._child_started,
            _E.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED: self._child_completed,
            _E.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED: self._child_failed,
            _E.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED: self._child_cancelled,
            _E.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT: self._child_timed_out,
            _E.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED: self._child_terminated,
        }

    # -- activities

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
        self._describe(call, attributes.header.fields)
        if self._judges:
            call.plain_args = [self._plain.of_payload(p) for p in call.args]
        self._fold.scheduled(call)

    def _activity_started(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_started_event_attributes
        about = _about(event, attributes.scheduled_event_id, "activity")
        self._fold.started(about, attributes.attempt)

    def _activity_completed(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_completed_event_attributes
        self._completed(_about(event, attributes.scheduled_event_id, "activity"), attributes.result)

    def _activity_failed(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_failed_event_attributes
        found = failures.failure_of(attributes.failure)
        self._ended(_about(event, attributes.scheduled_event_id, "activity"), found, "failed")

    def _activity_timed_out(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_timed_out_event_attributes
        found = failures.failure_of(attributes.failure)
        self._ended(_about(event, attributes.scheduled_event_id, "activity"), found, "timed_out")

    def _activity_cancelled(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_canceled_event_attributes
        self._ended(
            _about(event, attributes.scheduled_event_id, "activity"),
            failures.CANCELLED,
            "cancelled",
        )

    def _activity_cancel_requested(self, event: HistoryEvent) -> None:
        attributes = event.activity_task_cancel_requested_event_attributes
        self._fold.cancel_requested(_about(event, attributes.scheduled_event_id, "activity"))

    # -- children

    def _child_initiated(self, event: HistoryEvent) -> None:
        attributes = event.start_child_workflow_execution_initiated_event_attributes
        call = Call(
            event.event_id,
            "workflow",
            attributes.workflow_type.name,
            call_id=attributes.workflow_id,
            task_queue=attributes.task_queue.name,
            args=attributes.input.payloads,
            priority=_priority(attributes.priority),
            namespace=attributes.namespace,
            parent_close_policy=_CLOSE_POLICIES.get(attributes.parent_close_policy, ""),
        )
        self._describe(call, attributes.header.fields)
        if call.record is not None and call.record.hands_over is not None:
            self._handed.add(event.event_id)
            call.handed = plans.hand_over_in(call.args, self._plain)
        self._fold.scheduled(call)

    def _child_not_started(self, event: HistoryEvent) -> None:
        attributes = event.start_child_workflow_execution_failed_event_attributes
        self._ended(
            _about(event, attributes.initiated_event_id, "workflow"),
            failures.REFUSED,
            "not_started",
        )

    def _child_started(self, event: HistoryEvent) -> None:
        attributes = event.child_workflow_execution_started_event_attributes
        run_id = attributes.workflow_execution.run_id
        about = _about(event, attributes.initiated_event_id, "workflow")
        self._fold.started(about, run_id=run_id)

    def _child_completed(self, event: HistoryEvent) -> None:
        attributes = event.child_workflow_execution_completed_event_attributes
        about = _about(event, attributes.initiated_event_id, "workflow")
        if about.of in self._handed:
            found = plans.answer_in(attributes.result.payloads, self._plain)
            self._fold.answered(about, found)
        else:
            self._completed(about, attributes.result)

    def _child_failed(self, event: HistoryEvent) -> None:
        attributes = event.child_workflow_execution_failed_event_attributes
        found = failures.failure_of(attributes.failure)
        self._ended(_about(event, attributes.initiated_event_id, "workflow"), found, "failed")

    def _child_cancelled(self, event: HistoryEvent) -> None:
        attributes = event.child_workflow_execution_canceled_event_attributes
        self._ended(
            _about(event, attributes.initiated_event_id, "workflow"),
            failures.CANCELLED,
            "cancelled",
        )

    def _child_timed_out(self, event: HistoryEvent) -> None:
        attributes = event.child_workflow_execution_timed_out_event_attributes
        found = failures.timeout(TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)
        self._ended(_about(event, attributes.initiated_event_id, "workflow"), found, "timed_out")

    def _child_terminated(self, event: HistoryEvent) -> None:
        attributes = event.child_workflow_execution_terminated_event_attributes
        self._ended(
            _about(event, attributes.initiated_event_id, "workflow"),
            failures.TERMINATED,
            "terminated",
        )

    # -- calls

    def _completed(self, about: About, results: Payloads) -> None:
        result = results.payloads[0] if results.payloads else None
        plain = None
        if self._judges and result is not None:
            plain = self._plain.of_payload(result)
        self._fold.completed(about, result, plain)

    def _ended(self, about: About, failure: outcome.Failure, how: str) -> None:
        self._fold.failed(about, failure, how)

    def _describe(self, call: Call, headers: Mapping[str, Payload]) -> None:
        if wire.HEADER not in headers:
            return
        data, problem = self._plain.json(headers[wire.HEADER])
        if problem is not None:
            call.unreadable = problem
            return
        call.record = wire.decode(data)
        call.contract = self._recorded.contract(call.kind, call.name, call.record)


def _about(event: HistoryEvent, of: int, kind: Kind) -> About:
    return About(event.event_id, of, kind, time_of(event.event_time))


def _priority(priority: Priority) -> tuple[int, str, float] | None:
    if not (priority.priority_key or priority.fairness_key or priority.fairness_weight):
        return None
    return (priority.priority_key, priority.fairness_key, priority.fairness_weight)


def time_of(time: Timestamp) -> datetime:
    """Return a time in the precision that Python has."""
    return datetime.fromtimestamp(time.seconds + time.nanos // 1000 / 1e6, tz=UTC)
