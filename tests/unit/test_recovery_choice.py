"""What of closed runs a recovery undoes, in which order, and how a plan is cut into parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.attempts import Attempt, Attempts, Tried, with_attempts
from agboss_temporal.core.choosing import Candidate, choose, plan_order, settled_order
from agboss_temporal.core.entry import State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.portions import portion
from agboss_temporal.core.run_ledger import RunEnd, RunEntry, RunLedger, UnrecordedCall
from tests.unit.ledgers import at, entry, undo

NOBODY = Attempts()


def run(*entries: RunEntry, name: str = "order-7", **more: Any) -> RunLedger:
    end = RunEnd("terminated", 99, at(90))
    return RunLedger(name, "Order", f"{name}-run", "orders", entries, end=end, **more)


def in_doubt(number: int, on_unknown: str) -> RunEntry:
    made = entry(number, "charge", "refund", State.IN_DOUBT, doubt="abandoned", settled_at=None)
    return replace(made, contract=replace(made.contract, on_unknown=on_unknown))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "chosen", "noted"),
    [
        (State.OPEN, True, False),
        (State.UNDOING, True, False),
        (State.SEALED, False, False),
        (State.NO_EFFECT, False, False),
        (State.UNDONE, False, False),
        (State.IRREVERSIBLE, False, False),
        (State.FAILED, False, True),
        (State.NOT_RUN, False, True),
        (State.SKIPPED, False, True),
        (State.DENIED, False, True),
    ],
)
def test_what_has_its_verdict_is_left_alone(state: State, chosen: bool, noted: bool) -> None:
    found = choose(run(entry(1, "charge", "refund", state)), NOBODY)
    assert (bool(found.candidates), bool(found.notes)) == (chosen, noted)
    assert bool(found.keys) == chosen


def test_what_is_in_doubt_goes_by_its_contract() -> None:
    found = choose(run(in_doubt(1, "undo"), in_doubt(2, "report")), NOBODY)
    assert [c.entry.ordinal for c in found.candidates] == [1]
    [note] = found.notes
    assert "may have taken effect (abandoned)" in note


def test_what_only_a_person_can_judge_is_said() -> None:
    found = choose(
        run(
            entry(1, "mail", None, State.OPEN),
            committers_in_doubt=(CommitterInDoubt("k-2", "ship", "abandoned"),),
            unrecorded=(UnrecordedCall(7, "pack", "local-activity"),),
        ),
        NOBODY,
    )
    assert not found.candidates
    assert [note.split()[0] for note in found.notes] == ["mail", "committer", "pack"]


def test_what_lives_on_elsewhere_is_neither_chosen_nor_told() -> None:
    ledger = run(entry(1, "charge", "refund", State.OPEN), in_doubt(2, "report"))
    assert choose(ledger, NOBODY, frozenset(e.key for e in ledger)).is_empty


def tried(key: str, verdict: str | None, **more: Any) -> Tried:
    return Tried(key, "charge", "refund", "order-7", verdict, **more)


def attempt(*each: Tried, is_open: bool = False, decides: bool = False) -> Attempt:
    return Attempt("r-1", "run", is_open, {t.key: t for t in each}, decides)


def test_what_attempts_have_done_is_subtracted() -> None:
    ledger = run(*(entry(n, "charge", "refund", State.OPEN) for n in range(1, 6)))
    keys = [e.key for e in ledger]
    found = choose(
        ledger,
        Attempts(
            [
                attempt(tried(keys[0], "undone"), tried(keys[1], "failed", started_at=at(50))),
                attempt(tried(keys[2], None), is_open=True),
                attempt(tried(keys[3], "failed", reason="Broken"), decides=True),
            ]
        ),
    )
    assert [(c.entry.key, c.started_at) for c in found.candidates] == [
        (keys[1], at(50)),
        (keys[4], None),
    ]
    assert list(found.at_work) == ["r-1"]
    [note] = found.notes
    assert "Broken" in note
    assert found.keys == set(keys)


def test_when_an_undo_was_started_is_told() -> None:
    calls = (undo(20, "refund", 20), undo(30, "refund", 30, outcome=None))
    ledger = run(entry(1, "charge", "refund", State.UNDOING, undos=calls))
    [candidate] = choose(ledger, NOBODY).candidates
    assert candidate.started_at == at(30)


def names(ledgers: list[RunLedger]) -> list[str]:
    candidates = [c for ledger in ledgers for c in choose(ledger, NOBODY).candidates]
    placed = settled_order(candidates)
    return [placed[n].candidate.entry.contract.action for n in plan_order(placed)]


def test_a_family_is_undone_newest_first_across_its_members() -> None:
    parent = run(entry(1, "a", "x", State.OPEN), entry(9, "d", "x", State.OPEN))
    child = run(entry(3, "b", "x", State.OPEN), entry(4, "c", "x", State.OPEN), name="child")
    assert names([parent, child]) == ["d", "c", "b", "a"]


def test_what_is_in_doubt_comes_first_newest_started_first() -> None:
    doubtful = [replace(in_doubt(n, "undo"), sequence=9 + n) for n in (2, 3)]
    ledger = run(entry(5, "a", "x", State.OPEN), *doubtful)
    placed = settled_order(choose(ledger, NOBODY).candidates)
    assert [placed[n].candidate.entry.ordinal for n in plan_order(placed)] == [3, 2, 5]


def test_the_order_within_a_run_is_its_own_whatever_the_clocks_say() -> None:
    early = entry(2, "late", "x", State.OPEN, settled_at=at(0))
    assert names([run(entry(1, "first", "x", State.OPEN), early)]) == ["late", "first"]


def test_what_an_earlier_run_carried_is_oldest() -> None:
    carried = entry(
        *(1, "carried", "x", State.OPEN), event_id=None, settled_at=None, scheduled_at=None
    )
    other = run(entry(1, "child's", "x", State.OPEN, settled_at=at(-5)), name="child")
    assert names([run(carried), other]) == ["child's", "carried"]


def afters(*ledgers: RunLedger) -> dict[str, int | None]:
    candidates = [Candidate(e, ledger) for ledger in ledgers for e in ledger]
    return {p.candidate.entry.contract.action: p.after for p in settled_order(candidates)}


def test_what_overlapped_in_a_run_is_known_to_have() -> None:
    fan_out = [entry(n, f"a{n}", "x", State.OPEN, after=0) for n in (1, 2, 3)]
    assert afters(run(*fan_out)) == {"a1": None, "a2": 0, "a3": 0}
    in_turn = [entry(n, f"a{n}", "x", State.OPEN, after=n - 1) for n in (1, 2, 3)]
    assert afters(run(*in_turn)) == {"a1": None, "a2": None, "a3": None}


def test_what_started_after_another_run_s_had_settled_builds_on_it() -> None:
    parent = run(entry(1, "a", "x", State.OPEN, after=0), entry(5, "c", "x", State.OPEN, after=0))
    child = run(entry(3, "b", "x", State.OPEN, after=0), name="child")
    assert afters(parent, child) == {"a": None, "b": None, "c": None}
    overlapping = run(
        entry(3, "b", "x", State.OPEN, after=0, scheduled_at=at(1.1), settled_at=at(9)),
        name="child",
    )
    assert afters(parent, overlapping) == {"a": None, "c": 0, "b": 0}


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 10))
def test_portions_fit_and_take_all(sizes: list[int], most: int) -> None:
    limit, taken = 50, 0
    while taken < len(sizes):
        rest = sizes[taken:]
        part = portion(rest, most, limit, lambda n, rest=rest: b"x" * sum(rest[:n]))  # type: ignore[misc]
        assert part is not None
        assert 1 <= part.count <= most
        assert len(part.data) == sum(rest[: part.count]) <= limit
        taken += part.count
    assert taken == len(sizes)


def test_one_entry_that_does_not_fit_is_said_to() -> None:
    assert portion([60], 5, 50, lambda count: b"x" * 60 * count) is None


def test_what_recoveries_have_done_is_seen_in_the_ledger() -> None:
    ledger = run(*(entry(n, "charge", "refund", State.OPEN) for n in (1, 2, 3, 4)))
    keys = [e.key for e in ledger]
    told = with_attempts(
        ledger,
        Attempts(
            [
                attempt(
                    tried(keys[0], "failed", started_at=at(95), reason="Down"),
                    tried(keys[1], "undone", started_at=at(96), ended_at=at(97), attempts=2),
                    tried(keys[2], None, started_at=at(98)),
                    tried(keys[3], None),
                    is_open=True,
                ),
            ]
        ),
    )
    assert [e.state for e in told] == [State.OPEN, State.UNDONE, State.UNDOING, State.OPEN]
    assert [len(e.undos) for e in told] == [1, 1, 1, 0]
    undone = told.entries[1].undos[0]
    assert (undone.by, undone.outcome, undone.attempts) == ("r-1", "completed", 2)
    assert undone.settled_event_id is None  # its event is in another history
    assert [e.key for e in told.built_on(50)] == keys[:3]


def test_whether_a_handed_over_undo_has_begun_its_workflow_tells_if_it_can() -> None:
    calls = (undo(20, "refund", 20, outcome=None, by="r-1"),)
    ledger = run(entry(1, "charge", "refund", State.UNDOING, undos=calls))
    [key] = [e.key for e in ledger]
    told = [
        (NOBODY, at(20)),
        (Attempts([attempt(tried(key, "not_run"))]), None),
        (Attempts([attempt(tried(key, "failed", started_at=at(21)))]), at(21)),
    ]
    for attempts, begun in told:
        [candidate] = choose(ledger, attempts).candidates
        assert candidate.started_at == begun
