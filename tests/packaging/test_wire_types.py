"""Strings that histories, retry policies and dashboards hold: they never change."""

from __future__ import annotations

from temporalio.exceptions import ApplicationError

from agboss_temporal import exceptions, registry
from agboss_temporal.core import report, wire
from agboss_temporal.core.entry import State
from agboss_temporal.core.errors import AgbossError
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.sealing import SEALED_UNIT
from agboss_temporal.markers import CONTINUE_PATCH, HANDLER_PATCH, SEARCH_PATCH, UNWIND_PATCH
from agboss_temporal.run import INSTALLED
from agboss_temporal.telemetry import names
from agboss_temporal_interceptors.workflow import REPORT_QUERY


def test_error_types() -> None:
    assert {name: getattr(exceptions, name) for name in exceptions.__all__ if name.isupper()} == {
        "COMPENSATION_FAILED": "CompensationFailedError",
        "JOIN_FAILED": "JoinFailedError",
        "LIMIT_EXCEEDED": "LimitExceededError",
        "UNCOMMITTED_ACTION": "UncommittedActionError",
        "UNRECORDED_ACTION": "UnrecordedAction",
        "UNWIND_IN_PROGRESS": "UnwindInProgress",
    }


def test_errors_that_cross_the_wire_are_final_and_typed() -> None:
    errors: list[tuple[ApplicationError, str]] = [
        (exceptions.CompensationFailedError(CompensationReport()), "CompensationFailedError"),
        (exceptions.LimitExceededError("spent"), "LimitExceededError"),
        (exceptions.UncommittedActionError({"reserve": "ship"}), "UncommittedActionError"),
    ]
    for error, kind in errors:
        assert error.type == kind
        assert error.non_retryable


def test_the_other_errors_stay_in_the_process() -> None:
    wire_errors = {
        "CompensationFailedError",
        "JoinFailedError",
        "LimitExceededError",
        "UncommittedActionError",
    }
    for name in exceptions.__all__:
        kind = getattr(exceptions, name)
        if isinstance(kind, type):
            assert issubclass(kind, ApplicationError) == (name in wire_errors)
            assert issubclass(kind, AgbossError) == (name not in wire_errors)


def test_an_uncommitted_action_is_named_with_its_committer() -> None:
    error = exceptions.UncommittedActionError({"reserve": "ship", "charge": "bill"})
    assert "charge waits for bill, reserve waits for ship" in error.message


def test_names_in_histories_and_dashboards() -> None:
    assert wire.HEADER == "agboss-compensation"
    assert UNWIND_PATCH == "agboss-unwind-1"
    assert HANDLER_PATCH == "agboss-handler-unwind-1"
    assert CONTINUE_PATCH == "agboss-continue-1"
    assert SEARCH_PATCH == "agboss-search-attributes-1"
    assert SEALED_UNIT == "agboss-sealed"
    assert REPORT_QUERY == "agboss.compensation"
    assert INSTALLED == "__agboss_temporal_installed"
    assert registry.CONTRACT_ATTRIBUTE == "__agboss_contract__"


def test_names_of_metrics_and_of_the_field_of_a_log_record() -> None:
    assert sorted(names.DESCRIPTIONS) == [
        "agboss_compensation_actions",
        "agboss_compensation_ambiguous_undos",
        "agboss_compensation_undo_attempts",
        "agboss_compensation_undo_duration",
        "agboss_compensation_undos",
        "agboss_compensation_unrecorded",
        "agboss_compensation_unwind_duration",
        "agboss_compensation_unwind_size",
        "agboss_compensation_unwinds",
        "agboss_compensation_unwinds_started",
    ]
    assert names.EXTRA == "agboss_compensation"


def test_words_in_reports() -> None:
    assert report.TRIGGERS == ("node-failure", "run-cancel", "cap-breach", "operator-request")
    assert sorted(report.VERDICTS) == [
        "denied",
        "failed",
        "irreversible",
        "not_run",
        "skipped",
        "undone",
    ]
    assert sorted(s.value for s in State) == sorted(
        [*report.VERDICTS, "running", "open", "in_doubt", "no_effect", "sealed", "undoing"]
    )
