"""The ledger's table of moves is the whole truth: nothing else moves, finals never do."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import TRANSITIONS, UNFINISHED, Entry, State, Step, fingerprint
from agboss_temporal.core.errors import IllegalTransitionError
from agboss_temporal.core.ledger import MAX_CLOSED, MAX_IN_DOUBT, CommitterInDoubt, Ledger
from agboss_temporal.core.report import VERDICTS
from agboss_temporal.core.scope import Scope, related, within
from tests.unit.strategies import payload, units

MEANING = {
    "running": {"complete": "open", "doubt": "in_doubt", "dismiss": "no_effect"},
    "open": {
        "seal": "sealed",
        "undo": "undoing",
        "fail": "failed",
        "skip": "skipped",
        "deny": "denied",
        "leave": "not_run",
        "keep": "irreversible",
    },
    "in_doubt": {
        "seal": "sealed",
        "undo": "undoing",
        "fail": "failed",
        "skip": "skipped",
        "deny": "denied",
        "leave": "not_run",
        "keep": "irreversible",
    },
    "undoing": {
        "succeed": "undone",
        "fail": "failed",
        "reopen": "open",
        "reopen_in_doubt": "in_doubt",
    },
}
"""The moves as the design describes them, written down apart from the code."""

CONTRACT = Contract("reserve", undo="release", committer="ship")
PAIRS = [(state, step) for state in State for step in Step]
FINALS = [s for s in State if s.value not in MEANING]


def entry_in(state: State) -> tuple[Ledger, Entry]:
    """Bring an entry into a state by legal moves only."""
    paths: dict[State, list[Step]] = {State.RUNNING: []}
    waiting = [State.RUNNING]
    while waiting:
        here = waiting.pop(0)
        for (source, step), target in TRANSITIONS.items():
            if source is here and target not in paths:
                paths[target] = [*paths[here], step]
                waiting.append(target)
    ledger = Ledger()
    entry = ledger.begin(Entry("k-1", CONTRACT, 1))
    entry.sequence = 7
    entry.raw, entry.value, entry.args = payload(b"raw"), object(), (payload(b"arg"),)
    for step in paths[state]:
        ledger.move(entry, step)
    return ledger, entry


def complete(ledger: Ledger, entry: Entry, data: bytes | None = None) -> Entry:
    ledger.complete(ledger.begin(entry), None if data is None else payload(data))
    return entry


def snapshot(ledger: Ledger, entry: Entry) -> list[Any]:
    fields = [getattr(entry, name) for name in Entry.__slots__]
    return [*fields, list(ledger), ledger.pending(), list(ledger.committers_in_doubt)]


@pytest.mark.parametrize(("state", "step"), PAIRS, ids=lambda s: s.value)
def test_a_move_is_what_the_table_says_and_nothing_else(state: State, step: Step) -> None:
    ledger, entry = entry_in(state)
    target = MEANING.get(state.value, {}).get(step.value)
    if target is not None:
        ledger.move(entry, step)
        assert entry.state == target
        return
    before = snapshot(ledger, entry)
    with pytest.raises(IllegalTransitionError) as refusal:
        ledger.move(entry, step)
    assert snapshot(ledger, entry) == before
    assert (refusal.value.key, refusal.value.state, refusal.value.step) == ("k-1", state, step)
    assert state.value in str(refusal.value)
    assert step.value in str(refusal.value)


@pytest.mark.parametrize("state", FINALS, ids=lambda s: s.value)
def test_a_final_entry_never_moves_and_lets_its_data_go(state: State) -> None:
    ledger, entry = entry_in(state)
    assert ledger.pending() == []
    assert (entry.raw, entry.value, entry.args) == (None, None, ())
    assert ledger.seal("ship", ()) == []
    assert ledger.finish() == []
    assert list(ledger) == []
    assert not any(source is state for source, _ in TRANSITIONS)


def test_an_illegal_completion_or_doubt_takes_no_sequence_number() -> None:
    ledger = Ledger()
    first = ledger.begin(Entry("k-1", CONTRACT, 1))
    second = ledger.begin(Entry("k-2", CONTRACT, 2))
    ledger.complete(first, payload(b"one"))
    before = snapshot(ledger, first)
    with pytest.raises(IllegalTransitionError):
        ledger.complete(first, payload(b"two"))
    with pytest.raises(IllegalTransitionError):
        ledger.doubt(first, "raised")
    assert snapshot(ledger, first) == before
    ledger.complete(second, None)
    assert (first.sequence, second.sequence) == (1, 2)


def test_verdicts_are_the_final_states_of_a_planned_entry() -> None:
    others = {State.SEALED, State.NO_EFFECT}
    assert {s.value for s in FINALS if s not in others} == VERDICTS
    assert VERDICTS - {"undone", "irreversible"} == UNFINISHED


@given(units, units)
def test_units_are_related_exactly_along_one_path(one: tuple[int, ...], other: Any) -> None:
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    assert within(one, other) == (shared == len(other))
    assert related(one, other) == (shared in (len(one), len(other)))
    assert related(one, other) == related(other, one)


@given(st.lists(units, max_size=8), units)
def test_a_committer_seals_along_its_own_path_only(where: list[Any], unit: Any) -> None:
    ledger = Ledger()
    entries = [ledger.begin(Entry(f"k-{n}", CONTRACT, n, unit=u)) for n, u in enumerate(where)]
    for entry in entries:
        ledger.complete(entry, None)
    expected = [
        e
        for e in entries
        if e.unit[: len(unit)] == unit[: len(e.unit)]  # equal as far as both go
    ]
    assert ledger.seal("bill", unit) == []
    assert ledger.seal("ship", unit) == expected
    assert [e for e in entries if e.state is State.SEALED] == expected


@pytest.mark.parametrize("state", [s for s in State if s not in FINALS], ids=lambda s: s.value)
def test_a_key_is_entered_once(state: State) -> None:
    ledger, entry = entry_in(state)
    before = snapshot(ledger, entry)
    for again in (entry, Entry("k-1", CONTRACT, 2)):
        with pytest.raises(IllegalTransitionError, match="k-1"):
            ledger.begin(again)
    assert snapshot(ledger, entry) == before


def test_the_refusal_of_a_move_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(IllegalTransitionError("k-1", State.OPEN, Step.COMPLETE)))
    assert (error.key, error.state, error.step) == ("k-1", State.OPEN, Step.COMPLETE)
    assert str(error) == str(IllegalTransitionError("k-1", State.OPEN, Step.COMPLETE))


def test_a_closed_entry_is_known_by_what_its_undo_would_be_given() -> None:
    ledger = Ledger()
    for number, data in enumerate((b"one", b"two", b"one"), 1):
        complete(ledger, Entry(f"k-{number}", CONTRACT, number), data)
    ledger.finish()
    one, three = fingerprint([payload(b"one")]), fingerprint([payload(b"three")])
    assert ledger.closed_before("release", one)
    assert not ledger.closed_before("release", three)
    assert not ledger.closed_before("refund", one)
    assert fingerprint([]) == b""
    assert not ledger.closed_before("release", b"")


def test_a_ledger_that_lives_for_years_does_not_grow() -> None:
    ledger = Ledger()
    for number in range(5000):
        complete(ledger, Entry(f"k-{number}", CONTRACT, number), str(number).encode())
        ledger.finish()
        doubtful = ledger.begin(Entry(f"d-{number}", CONTRACT, number))
        ledger.doubt(doubtful, "raised")
        ledger.doubt_committer(CommitterInDoubt(f"c-{number}", "ship", "raised"))
    assert [e.key for e in ledger] == [f"d-{n}" for n in range(4900, 5000)]
    assert [c.key for c in ledger.committers_in_doubt] == [f"c-{n}" for n in range(4900, 5000)]
    assert ledger.omitted_in_doubt == 9800
    assert ledger.closed_before("release", fingerprint([payload(b"4999")]))
    assert not ledger.closed_before("release", fingerprint([payload(b"1")]))
    assert len(ledger._closed) == MAX_CLOSED


def test_what_is_in_doubt_and_will_be_undone_is_never_dropped() -> None:
    ledger = Ledger()
    contract = Contract("reserve", undo="release", on_unknown="undo", undo_input="args")
    for number in range(3 * MAX_IN_DOUBT):
        ledger.doubt(ledger.begin(Entry(f"k-{number}", contract, number)), "raised")
    assert len(ledger.to_undo()) == 3 * MAX_IN_DOUBT
    assert ledger.omitted_in_doubt == 0


def test_a_unit_that_ends_hands_over_and_the_next_committer_tells() -> None:
    ledger = Ledger()
    inner = complete(ledger, Entry("k-1", CONTRACT, 1, unit=(1, 2)))
    other = complete(ledger, Entry("k-2", CONTRACT, 2, unit=(2,)))
    ledger.hand_over((1, 2), (1,))
    ledger.hand_over((1,), ())
    assert (inner.unit, other.unit) == ((), (2,))
    assert ledger.to_undo(Scope((1,))) == []
    # A committer whose record was written before says nothing of the units that ended.
    assert ledger.seal("ship", (3,)) == []
    assert ledger.tell(5) == [(1,), (1, 2)]
    assert ledger.tell(8) == []
    assert ledger.seal("ship", (3,)) == [inner]


def test_the_end_of_a_unit_is_told_again_until_it_is_sure_to_be_sent() -> None:
    ledger = Ledger()
    complete(ledger, Entry("k-1", CONTRACT, 1, unit=(1, 2)))
    ledger.hand_over((1, 2), (1,))
    assert ledger.tell(5) == ledger.tell(5) == [(1, 2)]
    ledger.hand_over((1,), ())
    assert ledger.tell(5) == [(1,), (1, 2)]
    ledger.not_sent([(1,)])
    assert ledger.tell(9) == [(1,), (1, 2)]
    assert ledger.tell(12) == []


def test_only_an_entry_that_waits_for_a_committer_is_told_of() -> None:
    ledger = Ledger()
    complete(ledger, Entry("k-1", Contract("reserve", undo="release"), 1, unit=(1,)))
    ledger.hand_over((1,), ())
    assert ledger.tell(5) == []


def test_a_unit_is_sealed_by_itself() -> None:
    ledger = Ledger()
    where = [(), (1,), (1, 1), (2,)]
    entries = [complete(ledger, Entry(f"k-{n}", CONTRACT, n, unit=u)) for n, u in enumerate(where)]
    waiting = ledger.begin(Entry("k-9", CONTRACT, 9, unit=(1,)))
    assert ledger.seal_unit((1,), keep_uncommitted=True) == []
    assert ledger.seal_unit((1,)) == [entries[1]]
    assert waiting.state is State.RUNNING


def test_what_is_committed_while_it_is_undone_is_sealed_if_the_undo_fails() -> None:
    ledger = Ledger()
    contract = Contract("reserve", undo="release", committer="ship")
    entry = ledger.begin(Entry("k-1", contract, 1))
    ledger.complete(entry, None)
    ledger.move(entry, Step.UNDO)
    assert ledger.seal("ship", ()) == []
    ledger.reopen(entry)
    assert entry.state is State.SEALED
