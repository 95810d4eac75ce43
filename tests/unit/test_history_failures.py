"""A failure in a history is told as the workflow that awaited the call saw it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, default
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    RetryState,
    TimeoutError,
    TimeoutType,
)

from agboss_temporal.core import outcome
from agboss_temporal.core.contract import Contract
from agboss_temporal.history.failures import failure_of
from agboss_temporal.undo import error_type
from agboss_temporal_interceptors import outcomes

CONTRACT = Contract("BookTrip", undo="cancel_trip", no_effect_errors=("Declined",))


def of_activity(cause: BaseException) -> BaseException:
    error = ActivityError(
        "failed",
        scheduled_event_id=5,
        started_event_id=6,
        identity="worker",
        activity_type="pay",
        activity_id="1",
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = cause
    return error


def of_child(cause: BaseException) -> BaseException:
    error = ChildWorkflowError(
        "failed",
        namespace="default",
        workflow_id="trip",
        run_id="run",
        workflow_type="BookTrip",
        initiated_event_id=5,
        started_event_id=6,
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = cause
    return error


RAISED = {
    "declined": ApplicationError("no", type="Declined"),
    "broke": ApplicationError("no", type="Broke"),
    "late": TimeoutError("late", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[]),
    "unseen": TimeoutError("late", type=TimeoutType.SCHEDULE_TO_START, last_heartbeat_details=[]),
    "cancelled": CancelledError("stop"),
    "its activity declined": of_activity(ApplicationError("no", type="Declined")),
    "its activity was late": of_activity(
        TimeoutError("late", type=TimeoutType.START_TO_CLOSE, last_heartbeat_details=[])
    ),
    "its child's activity declined": of_child(of_activity(ApplicationError("no", type="Declined"))),
}


@pytest.mark.parametrize("called", [of_activity, of_child])
@pytest.mark.parametrize("raised", RAISED)
def test_k5_the_history_of_a_call_says_what_the_awaiting_workflow_saw(
    called: Callable[[BaseException], BaseException], raised: str
) -> None:
    recorded = Failure()
    converter = default().payload_converter
    DefaultFailureConverter().to_failure(called(RAISED[raised]), converter, recorded)
    told = DefaultFailureConverter().from_failure(recorded, converter)

    found = failure_of(recorded.cause)

    assert outcome.doubt(found, CONTRACT.no_effect_errors, single_attempt=True) == outcomes.doubt(
        told, CONTRACT, abandoned=False, never_sent=False, single_attempt=True
    )


@pytest.mark.parametrize(
    "raised", ["declined", "broke", "its activity declined", "its child's activity declined"]
)
def test_the_type_that_reports_name_is_that_of_the_innermost_error(raised: str) -> None:
    recorded = Failure()
    converter = default().payload_converter
    DefaultFailureConverter().to_failure(RAISED[raised], converter, recorded)
    assert failure_of(recorded).type == error_type(RAISED[raised])
