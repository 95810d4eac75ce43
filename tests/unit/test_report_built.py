"""The report of a run is made from its unwinds and its ledger, and from nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.ledger import CommitterInDoubt, Entry, Ledger, Step
from agboss_temporal.core.plan import (
    MAX_UNWINDS,
    Planned,
    Unwind,
    build_report,
    fold_status,
)
from agboss_temporal.core.report import CompensationReport
from tests.unit.strategies import verdicts

RESERVE = Contract("reserve", undo="release")
START = datetime(2026, 1, 1, tzinfo=UTC)


def unwind(ordinal: int, *plan: str | None, ended: bool = True) -> Unwind:
    return Unwind(
        ordinal,
        "node-failure",
        f"Error{ordinal}",
        started_at=START,
        ended_at=START + timedelta(seconds=ordinal) if ended else None,
        plan=[
            Planned(Entry(f"k-{ordinal}-{n}", RESERVE, n), verdict=v) for n, v in enumerate(plan)
        ],
    )


def test_a_run_without_an_unwind_has_status_none() -> None:
    assert build_report([], []) == CompensationReport()


@given(st.lists(st.lists(verdicts.filter(bool), max_size=4), min_size=1, max_size=30))
@example([["undone"], ["failed"], *[["undone", "not_run"]] * 25])
def test_the_newest_unwinds_are_kept_and_all_are_counted(plans: list[list[str]]) -> None:
    unwinds = [unwind(n, *plan) for n, plan in enumerate(plans, 1)]
    report = build_report(unwinds, [])
    kept = unwinds[-20:]
    assert [u.ordinal for u in report.unwinds] == [u.ordinal for u in kept]
    assert report.older_unwinds == len(unwinds) - len(kept)
    assert [e.unwind for e in report.entries] == [u.ordinal for u in kept for _ in u.plan]
    everything = [v for plan in plans for v in plan]
    assert report.counts == {v: everything.count(v) for v in set(everything)}
    assert report.status == fold_status(everything)
    assert report.cause == f"Error{len(unwinds)}"
    assert MAX_UNWINDS == 20


def test_while_an_unwind_goes_on_the_status_says_so() -> None:
    assert build_report([unwind(1, ended=False)], []).status == "pending"
    going_on = build_report([unwind(1, "undone"), unwind(2, "undone", None, ended=False)], [])
    assert going_on.status == "running"
    assert [u.status for u in going_on.unwinds] == ["completed", "running"]
    assert going_on.counts == {"undone": 2}


def test_in_doubt_are_entries_that_still_are_and_committers() -> None:
    ledger = Ledger()
    entries = [ledger.begin(Entry(f"k-{n}", RESERVE, n)) for n in (1, 2, 3)]
    ledger.doubt(entries[0], "timed_out")
    ledger.doubt(entries[1], "raised")
    ledger.move(entries[1], Step.SEAL)
    ledger.complete(entries[2], None)
    report = build_report([], ledger, [CommitterInDoubt("k-9", "ship", "cancelled")], ["Other"])
    assert [(d.key, d.name, d.kind, d.role) for d in report.in_doubt] == [
        ("k-1", "reserve", "timed_out", "action"),
        ("k-9", "ship", "cancelled", "committer"),
    ]
    assert report.also_failed == ("Other",)
    assert report.status == "none"


def test_an_entry_tells_its_verdict_its_reason_and_its_times() -> None:
    one = unwind(1, "failed")
    one.plan[0].reason = "ReleaseBroken"
    one.plan[0].outcome = "unknown"
    one.plan[0].started_at, one.plan[0].ended_at = START, START + timedelta(seconds=3)
    [entry] = build_report([one], []).entries
    assert (entry.action, entry.undo, entry.unwind) == ("reserve", "release", 1)
    assert (entry.verdict, entry.reason, entry.outcome) == ("failed", "ReleaseBroken", "unknown")
    assert (entry.started_at, entry.ended_at) == (START, START + timedelta(seconds=3))
