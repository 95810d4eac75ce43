"""A client finds the report in whatever error it was given, or is told that there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, RetryState

from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.report import FAILURE_TYPE, CompensationReport, EntryReport
from agboss_temporal.exceptions import CompensationFailedError
from tests.unit.strategies import reports

REPORT = CompensationReport(
    status="partial",
    entries=(
        EntryReport("k-1", "reserve", "release", 1, verdict="failed"),
        EntryReport("k-2", "charge", "refund", 1, verdict="undone"),
        EntryReport("k-3", "print", None, 1, verdict="irreversible"),
    ),
    counts={"failed": 1, "undone": 1, "irreversible": 1},
)


def recorded(report: CompensationReport = REPORT) -> ApplicationError:
    """The error as a client decodes it: its type and details are all that is left of ours."""
    return ApplicationError("text", report.to_dict(), type=FAILURE_TYPE)


def raised_from(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


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
    return raised_from(error, cause)


CHAINS: list[Callable[[BaseException], BaseException]] = [
    lambda e: e,
    lambda e: WorkflowFailureError(cause=e),
    lambda e: raised_from(RuntimeError("mine"), e),
    in_activity,
    lambda e: raised_from(KeyError(1), WorkflowFailureError(cause=in_activity(e))),
]


@pytest.mark.parametrize("chain", CHAINS)
def test_it_is_found_anywhere_in_the_chain_of_causes(
    chain: Callable[[BaseException], BaseException],
) -> None:
    assert CompensationReport.from_error(chain(recorded())) == REPORT


@given(reports())
def test_what_the_workflow_raised_is_what_the_client_reads(report: CompensationReport) -> None:
    error = CompensationFailedError(report)
    assert (error.type, error.non_retryable) == (FAILURE_TYPE, True)
    assert CompensationReport.from_error(error) == report.shortened()


class Strange(Exception):
    """An error of somebody else, with attributes that are named like ours."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("strange")
        for name, value in attributes.items():
            setattr(self, name, value)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        CancelledError("cancelled"),
        WorkflowFailureError(cause=ApplicationError("text", {"version": 1}, type="Other")),
        ApplicationError("text", type=FAILURE_TYPE),
        ApplicationError("text", "not a report", type=FAILURE_TYPE),
        Strange(type=FAILURE_TYPE, details=None),
        Strange(type=FAILURE_TYPE),
        Strange(type=5, cause=None),
        BaseException(),
    ],
    ids=repr,
)
def test_an_error_without_a_report_has_none(error: BaseException) -> None:
    assert CompensationReport.from_error(error) is None


@pytest.mark.parametrize("cause", ["timeout", 7, lambda: None], ids=["text", "number", "method"])
def test_a_foreign_cause_that_is_no_error_ends_the_chain(cause: Any) -> None:
    assert CompensationReport.from_error(Strange(cause=cause)) is None
    wrapped = raised_from(Strange(cause=cause), recorded())
    assert CompensationReport.from_error(wrapped) == REPORT


class Endless(Exception):
    """Its chain of causes closes on itself; it says so when it is followed too often."""

    asked = 0

    @property
    def cause(self) -> BaseException:
        self.asked += 1
        assert self.asked < 100, "followed for ever"
        return self


def test_a_chain_that_closes_on_itself_ends() -> None:
    assert CompensationReport.from_error(Endless()) is None


def test_a_report_of_a_later_version_is_not_passed_over_in_silence() -> None:
    error = ApplicationError("text", {"version": 2}, type=FAILURE_TYPE)
    with pytest.raises(RecordError, match="2"):
        CompensationReport.from_error(WorkflowFailureError(cause=error))


def test_the_message_names_what_is_left_and_nothing_of_the_cause() -> None:
    report = CompensationReport.from_dict({**REPORT.to_dict(), "cause": "CardDeclined"})
    error = CompensationFailedError(report)
    error.__cause__ = ApplicationError("4111 1111 1111 1111")
    assert error.message == ("compensation partial: 1 of 3 undone, left behind: reserve (failed)")


def test_the_message_stays_short() -> None:
    many = tuple(
        EntryReport(f"k-{n}", "reserve", "release", 1, verdict="not_run") for n in range(500)
    )
    message = CompensationFailedError(CompensationReport(status="failed", entries=many)).message
    assert message.endswith(" and 490 more")
    assert message.count("reserve (not_run)") == 10
