"""Reading a history: its events in their order, and what they say of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from agboss_temporal.core import carry
from agboss_temporal.core.errors import HistoryError, IllegalTransitionError, RecordError
from agboss_temporal.core.facts import HAND_OVER, Origin
from agboss_temporal.core.fold import Fold
from agboss_temporal.core.report import FAILURE_TYPE, CompensationReport
from agboss_temporal.core.run_ledger import How, RunEnd, RunLedger
from agboss_temporal.core.sealing import SEALED_UNIT, Seal
from agboss_temporal.history import failures, plans
from agboss_temporal.history.calls import CallReader, Handlers, time_of
from agboss_temporal.history.contracts import Declared, table_of
from agboss_temporal.history.payloads import Plain, is_recovery

LOCAL_ACTIVITY: Final = "core_local_activity"
UNCOMMITTED: Final = "UncommittedActionError"

_E = EventType
_ENDS: Final[Mapping[int, How]] = {
    _E.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: "completed",
    _E.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: "failed",
    _E.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: "cancelled",
    _E.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: "terminated",
    _E.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: "timed_out",
    _E.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: "continued_as_new",
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
    plain = await Plain.of(events, data_converter, table)
    started = events[0].workflow_execution_started_event_attributes
    workflow_id = history.workflow_id if isinstance(history, WorkflowHistory) else ""
    origin = Origin(
        workflow_id=started.workflow_id or workflow_id,
        workflow_type=started.workflow_type.name,
        run_id=started.original_execution_run_id,
        task_queue=started.task_queue.name,
    )
    reader = _Reader(Fold(origin, table), plain, judges=table is not None)
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
    def __init__(self, fold: Fold, plain: Plain, *, judges: bool) -> None:
        self.fold = fold
        self._plain = plain
        self._task: tuple[int, datetime] | None = None
        self._closed = False
        self._recovers = False
        self._handlers: Handlers = {
            _E.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: self._run_started,
            _E.EVENT_TYPE_WORKFLOW_TASK_STARTED: self._task_started,
            _E.EVENT_TYPE_WORKFLOW_TASK_COMPLETED: self._task_completed,
            _E.EVENT_TYPE_WORKFLOW_TASK_FAILED: self._task_failed,
            _E.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT: self._task_timed_out,
            _E.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED: self._properties_modified,
            _E.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED: self._update_completed,
            _E.EVENT_TYPE_MARKER_RECORDED: self._marker_recorded,
            **CallReader(fold, plain, judges=judges).handlers,
            **dict.fromkeys(_ENDS, self._run_closed),
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

    # -- the run

    def _run_started(self, event: HistoryEvent) -> None:
        if event.event_id != 1:
            raise HistoryError(event.event_id, "the run starts again")
        attributes = event.workflow_execution_started_event_attributes
        if is_recovery(event):
            plan = plans.plan_in(attributes.input.payloads, self._plain)
            if isinstance(plan, str):
                self.fold.unreadable(event.event_id, HAND_OVER, plan)
            else:
                self._recovers = True
                self.fold.adopt_plan(plan, plans.payload_of)
            return
        payload = attributes.memo.fields.get(carry.MEMO)
        if payload is None or not payload.data or not attributes.continued_execution_run_id:
            return
        data, problem = self._plain.json(payload)
        if problem is not None:
            self.fold.unreadable(event.event_id, "memo", problem)
        elif carry.written_by(data) == attributes.continued_execution_run_id:
            self.fold.adopt(carry.decode(data), plans.payload_of)

    def _task_started(self, event: HistoryEvent) -> None:
        self._task = event.event_id, _workflow_time(event.event_time)

    def _task_completed(self, event: HistoryEvent) -> None:
        # The time-skipping test server leaves the reference out.
        started = event.workflow_task_completed_event_attributes.started_event_id
        task, self._task = self._task, None
        if task is None or started not in (0, task[0]):
            raise HistoryError(event.event_id, "it completes a workflow task that was not started")
        self.fold.task_completed(event.event_id, task[1])

    def _task_failed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_task_failed_event_attributes
        reset = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
        new = attributes.new_run_id if attributes.cause == reset else None
        self._task = None
        self.fold.task_failed(event.event_id, new)

    def _task_timed_out(self, event: HistoryEvent) -> None:
        self._task = None
        self.fold.task_failed(event.event_id)

    def _properties_modified(self, event: HistoryEvent) -> None:
        attributes = event.workflow_properties_modified_event_attributes
        payload = attributes.upserted_memo.fields.get(SEALED_UNIT)
        if payload is None or not payload.data:
            return
        data, problem = self._plain.json(payload)
        if problem is not None:
            self.fold.unreadable(event.event_id, "memo", problem)
        else:
            self.fold.unit_sealed(Seal.parse(_json(data)))

    def _update_completed(self, event: HistoryEvent) -> None:
        attributes = event.workflow_execution_update_completed_event_attributes
        if attributes.outcome.HasField("success"):
            self.fold.update_completed(attributes.meta.update_id)

    def _marker_recorded(self, event: HistoryEvent) -> None:
        attributes = event.marker_recorded_event_attributes
        if attributes.marker_name != LOCAL_ACTIVITY:
            return
        about = attributes.details["data"].payloads if "data" in attributes.details else ()
        data = _json(about[0].data) if about else None
        name = data.get("activity_type") if isinstance(data, dict) else None
        if isinstance(name, str):
            self.fold.local_action(event.event_id, name)

    def _run_closed(self, event: HistoryEvent) -> None:
        self._closed = True
        how = _ENDS[event.event_type]
        attributes: Any = getattr(event, event.WhichOneof("attributes") or "")
        failure = attributes.failure if how == "failed" else Failure()
        found = failures.failure_of(failure)
        if how == "completed" and self._recovers:
            self._recovered(event, attributes.result.payloads)
        end = RunEnd(
            how,
            event.event_id,
            at=time_of(event.event_time),
            failure_type=found.type or None,
            next_run_id=getattr(attributes, "new_execution_run_id", "") or None,
        )
        types = [failure.application_failure_info.type]
        report = None
        if types[0] == FAILURE_TYPE:
            types.append(failure.cause.application_failure_info.type)
            report = self._report_in(event, failure)
        self.fold.closed(end, report, uncommitted=UNCOMMITTED in types)

    def _recovered(self, event: HistoryEvent, results: Sequence[Payload]) -> None:
        outcomes = plans.result_in(results, self._plain)
        if isinstance(outcomes, str):
            self.fold.unreadable(event.event_id, HAND_OVER, outcomes)
        else:
            self.fold.recovered(event.event_id, outcomes)

    def _report_in(self, event: HistoryEvent, failure: Failure) -> CompensationReport | None:
        details = failure.application_failure_info.details.payloads
        if not details:
            return None
        data, problem = self._plain.json(details[0])
        if problem is not None:
            self.fold.unreadable(event.event_id, "failure", problem)
            return None
        return CompensationReport.from_dict(_json(data))


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as err:
        raise RecordError("it holds something that is not JSON") from err


def _workflow_time(time: Timestamp) -> datetime:
    """Return a time as workflow code reads it: by way of a float."""
    return datetime.fromtimestamp((time.seconds * 1_000_000_000 + time.nanos) / 1e9, tz=UTC)
