"""What an error proves about an effect: nothing, with few exceptions (rule K5)."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    RetryState,
    ServerError,
    TimeoutError,
    TimeoutType,
    WorkflowAlreadyStartedError,
)

from agboss_temporal.core.contract import Contract
from agboss_temporal_interceptors.outcomes import doubt

CONTRACT = Contract("reserve", undo="release", no_effect_errors=("OutOfStock", "ValueError"))


def in_activity(cause: BaseException) -> BaseException:
    error = ActivityError(
        "text",
        scheduled_event_id=5,
        started_event_id=6,
        identity="",
        activity_type="reserve",
        activity_id="1",
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = cause
    return error


def in_child(cause: BaseException) -> BaseException:
    error = ChildWorkflowError(
        "text",
        namespace="n",
        workflow_id="w",
        run_id="r",
        workflow_type="Order",
        initiated_event_id=5,
        started_event_id=6,
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    error.__cause__ = cause
    return error


def timeout(kind: TimeoutType) -> TimeoutError:
    return TimeoutError("text", type=kind, last_heartbeat_details=[])


def kind_of(error: BaseException, contract: Contract | None = CONTRACT, **known: Any) -> str | None:
    facts = {"abandoned": False, "never_sent": False, "single_attempt": False, **known}
    return doubt(error, contract, **facts)


@pytest.mark.parametrize("wrap", [in_activity, in_child, lambda e: e])
@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (ApplicationError("text", type="Boom"), "raised"),
        (ApplicationError("text"), "raised"),
        (ApplicationError("text", type="OutOfStock"), None),
        (ApplicationError("text", type="ValueError"), None),
        (ApplicationError("text", type="PayloadsTooLarge"), "lost_result"),
        (ApplicationError("text", type="PayloadValidationError"), "lost_result"),
        (ServerError("Complete result exceeds size limit of 2 MB"), "lost_result"),
        (ServerError("Complete result is odd"), "raised"),
        (CancelledError("text"), "cancelled"),
        (timeout(TimeoutType.START_TO_CLOSE), "timed_out"),
        (timeout(TimeoutType.SCHEDULE_TO_CLOSE), "timed_out"),
        (timeout(TimeoutType.HEARTBEAT), "timed_out"),
        (timeout(TimeoutType.SCHEDULE_TO_START), "timed_out"),
        (WorkflowAlreadyStartedError("w", "Order"), None),
    ],
)
def test_the_kind_of_doubt(wrap: Any, cause: BaseException, expected: str | None) -> None:
    assert kind_of(wrap(cause)) == expected


def test_without_a_contract_no_error_is_known_to_do_nothing() -> None:
    assert kind_of(in_activity(ApplicationError("text", type="OutOfStock")), None) == "raised"


def test_an_abandoned_call_is_in_doubt_as_such() -> None:
    assert kind_of(in_activity(CancelledError("text")), abandoned=True) == "abandoned"


@pytest.mark.parametrize("abandoned", [False, True])
def test_a_call_that_was_never_sent_did_nothing(abandoned: bool) -> None:
    error = in_activity(CancelledError("text"))
    assert kind_of(error, never_sent=True, abandoned=abandoned) is None


@pytest.mark.parametrize("kind", list(TimeoutType))
def test_only_a_single_attempt_that_nobody_took_is_known_never_to_have_started(
    kind: TimeoutType,
) -> None:
    never = kind == TimeoutType.SCHEDULE_TO_START
    assert (kind_of(in_activity(timeout(kind)), single_attempt=True) is None) == never


def test_an_error_of_any_other_kind_proves_nothing() -> None:
    assert kind_of(RuntimeError("cannot decode")) == "raised"
