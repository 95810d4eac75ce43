"""The report of a run is made from its unwinds and its ledger, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, Step
from agboss_temporal.core.ledger import CommitterInDoubt, Ledger
from agboss_temporal.core.plan import (
    MAX_UNWINDS,
    Planned,
    Unwind,
    UnwindLog,
    fold_status,
)
from agboss_temporal.core.report import CompensationReport
from tests.unit.strategies import verdicts

RESERVE = Contract("reserve", undo="release")
START = datetime(2026, 1, 1, tzinfo=UTC)


def unwind(ordinal: int, *plan: str | None, ended: bool = True) -> Unwind:
    return Unwind(
        "node-failure",
        f"Error{ordinal}",
        started_at=START,
        ended_at=START + timedelta(seconds=ordinal) if ended else None,
        plan=[
            Planned(Entry(f"k-{ordinal}-{n}", RESERVE, n), verdict=v) for n, v in enumerate(plan)
        ],
    )


def log_of(unwinds: Iterable[Unwind]) -> UnwindLog:
    log = UnwindLog()
    for each in unwinds:
        ended_at = each.ended_at
        each.ended_at = None
        log.begin(each)
        log.plan(each, each.plan)
        if ended_at is not None:
            log.end(each, ended_at)
    return log


def test_an_unwind_without_a_plan_is_not_kept_and_takes_no_number() -> None:
    log = UnwindLog()
    empty, real = unwind(1, ended=False), unwind(2, "undone", ended=False)
    log.begin(empty)
    log.begin(real)
    log.plan(empty, [])
    log.end(empty, START)
    log.plan(real, real.plan)
    assert [u.ordinal for u in log] == [1]


def test_unwinds_are_listed_by_their_numbers_also_if_one_that_began_first_is_planned_last() -> None:
    log = UnwindLog()
    first, second, third = (unwind(0, "undone", ended=False) for _ in range(3))
    for each in (first, second, third):
        log.begin(each)
    log.plan(second, second.plan)
    log.plan(first, first.plan)
    assert [u.ordinal for u in log] == [1, 2, 0]
    assert list(log) == [second, first, third]


def test_an_unwind_that_goes_on_is_kept_however_many_come_after_it() -> None:
    log = log_of([unwind(1, None, ended=False), *(unwind(n, "undone") for n in range(2, 40))])
    report = log.report(Ledger())
    assert report.unwinds[0].ordinal == 1
    assert report.status == "running"
    assert (len(report.unwinds), report.older_unwinds) == (MAX_UNWINDS + 1, 18)


@given(st.lists(st.lists(verdicts.filter(bool), min_size=1, max_size=3), max_size=30))
def test_what_was_left_behind_is_not_forgotten(plans: list[list[str]]) -> None:
    log = log_of(unwind(n, *plan) for n, plan in enumerate(plans, 1))
    everything = {v for plan in plans for v in plan}
    assert log.left_behind == bool(everything - {"undone", "irreversible"})


def test_a_run_without_an_unwind_has_status_none() -> None:
    assert UnwindLog().report(Ledger()) == CompensationReport()


@given(st.lists(st.lists(verdicts.filter(bool), min_size=1, max_size=4), min_size=1, max_size=30))
@example([["undone"], ["failed"], *[["undone", "not_run"]] * 25])
def test_the_newest_unwinds_are_kept_and_all_are_counted(plans: list[list[str]]) -> None:
    unwinds = [unwind(n, *plan) for n, plan in enumerate(plans, 1)]
    report = log_of(unwinds).report(Ledger())
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
    log = UnwindLog()
    log.begin(unwind(1, ended=False))
    assert log.report(Ledger()).status == "pending"
    two = [unwind(1, "undone"), unwind(2, "undone", None, ended=False)]
    going_on = log_of(two).report(Ledger())
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
    ledger.doubt_committer(CommitterInDoubt("k-9", "ship", "cancelled"))
    report = UnwindLog().report(ledger, ["Other"])
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
    [entry] = log_of([one]).report(Ledger()).entries
    assert (entry.action, entry.undo, entry.unwind) == ("reserve", "release", 1)
    assert (entry.verdict, entry.reason, entry.outcome) == ("failed", "ReleaseBroken", "unknown")
    assert (entry.started_at, entry.ended_at) == (START, START + timedelta(seconds=3))
