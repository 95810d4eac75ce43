"""The ledger's table of moves is the whole truth: nothing else moves, finals never do."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.errors import IllegalTransitionError
from agboss_temporal.core.ledger import (
    TRANSITIONS,
    UNFINISHED,
    Entry,
    Ledger,
    State,
    Step,
    fingerprint,
    related,
    within,
)
from agboss_temporal.core.report import VERDICTS
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
    assert list(ledger) == [entry]
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


def test_a_key_is_entered_once() -> None:
    ledger, entry = entry_in(State.UNDONE)
    before = snapshot(ledger, entry)
    for again in (entry, Entry("k-1", CONTRACT, 2)):
        with pytest.raises(IllegalTransitionError, match="k-1"):
            ledger.begin(again)
    assert snapshot(ledger, entry) == before


def test_the_refusal_of_a_move_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(IllegalTransitionError("k-1", State.OPEN, Step.COMPLETE)))
    assert (error.key, error.state, error.step) == ("k-1", State.OPEN, Step.COMPLETE)
    assert str(error) == str(IllegalTransitionError("k-1", State.OPEN, Step.COMPLETE))


def test_a_closed_entry_keeps_a_fingerprint_of_what_its_undo_would_be_given() -> None:
    ledger = Ledger()
    for number, data in enumerate((b"one", b"two", b"one"), 1):
        entry = ledger.begin(Entry(f"k-{number}", CONTRACT, number))
        ledger.complete(entry, payload(data))
    ledger.finish()
    one, two, again = (entry.fingerprint for entry in ledger)
    assert one == again == fingerprint([payload(b"one")])
    assert one != two
    assert fingerprint([]) == b""


def test_what_is_committed_while_it_is_undone_is_sealed_if_the_undo_fails() -> None:
    ledger = Ledger()
    contract = Contract("reserve", undo="release", committer="ship")
    entry = ledger.begin(Entry("k-1", contract, 1))
    ledger.complete(entry, None)
    ledger.move(entry, Step.UNDO)
    assert ledger.seal("ship", ()) == []
    ledger.reopen(entry)
    assert entry.state is State.SEALED
