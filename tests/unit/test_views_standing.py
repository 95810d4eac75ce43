"""What needs attention: it decides the exit code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agboss_temporal.core.entry import State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.run_ledger import (
    How,
    RunEnd,
    RunLedger,
    Unreadable,
    UnrecordedCall,
)
from agboss_temporal.views.standing import standing
from tests.unit import ledgers


def run(state: State, how: How | None) -> RunLedger:
    return RunLedger(
        *("w", "W", "r", "q"),
        entries=(ledgers.entry(1, "reserve", "release", state),),
        end=None if how is None else RunEnd(how, 9),
    )


GOING_ON: list[How | None] = [None, "continued_as_new"]
CLOSED: list[How | None] = ["failed", "cancelled", "terminated", "timed_out", "completed"]


@pytest.mark.parametrize("how", [*GOING_ON, *CLOSED])
@pytest.mark.parametrize("state", [State.SEALED, State.UNDONE, State.NO_EFFECT, State.IRREVERSIBLE])
def test_what_is_settled_needs_nobody(state: State, how: How | None) -> None:
    assert standing(run(state, how)).is_clean


@pytest.mark.parametrize("how", [*GOING_ON, *CLOSED])
@pytest.mark.parametrize(
    "state", [State.FAILED, State.SKIPPED, State.DENIED, State.NOT_RUN, State.IN_DOUBT]
)
def test_what_was_left_or_is_in_doubt_needs_somebody(state: State, how: How | None) -> None:
    found = standing(run(state, how))
    assert not found.is_clean
    assert str(found) == ("1 in doubt" if state is State.IN_DOUBT else "1 not undone")


@pytest.mark.parametrize(
    ("state", "told"),
    [(State.OPEN, "1 open"), (State.RUNNING, "1 in doubt"), (State.UNDOING, "1 in doubt")],
)
def test_what_may_still_move_needs_somebody_once_the_run_is_closed(state: State, told: str) -> None:
    assert all(standing(run(state, how)).is_clean for how in GOING_ON)
    assert {str(standing(run(state, how))) for how in CLOSED} == {told}


def test_other_things_that_need_somebody() -> None:
    closed = run(State.UNDONE, "failed")
    assert str(standing(closed)) == "nothing"
    committer = CommitterInDoubt("k-1", "ship", "timed_out")
    unrecorded = UnrecordedCall(5, "reserve", "activity")
    for more, told in (
        (replace(closed, committers_in_doubt=(committer,)), "1 in doubt"),
        (replace(closed, report=CompensationReport(omitted_in_doubt=7)), "7 in doubt"),
        (replace(closed, unrecorded=(unrecorded,)), "1 unrecorded"),
        (replace(closed, unreadable=(Unreadable(5, "memo", "why"),)), "1 unreadable record"),
    ):
        assert not standing(more).is_clean
        assert str(standing(more)) == told


def test_what_a_report_left_out_is_not_counted_twice() -> None:
    doubtful = run(State.IN_DOUBT, "failed")
    one_left_out = replace(doubtful, report=CompensationReport(omitted_in_doubt=1))
    assert str(standing(one_left_out)) == "1 in doubt"
    two_left_out = replace(doubtful, report=CompensationReport(omitted_in_doubt=2))
    assert str(standing(two_left_out)) == "2 in doubt"


def test_an_unrecorded_action_of_a_run_that_finished_is_no_trouble() -> None:
    finished = replace(ledgers.finished(), unrecorded=(UnrecordedCall(5, "reserve", "activity"),))
    assert standing(finished).is_clean


def test_all_of_it_is_told_worst_first() -> None:
    assert str(standing(ledgers.partial())) == (
        "1 not undone, 2 in doubt, 1 unrecorded, 1 unreadable record"
    )
