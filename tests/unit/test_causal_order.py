"""Under ``causal`` an undo waits for those of what started after its own action, and no other."""

from __future__ import annotations

import dataclasses
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.carry import overlaps
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, Step
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.order import CausalOrder, reverse_completion

CONTRACT = Contract("reserve", undo="release", on_unknown="undo", undo_input="args")


@st.composite
def plans(draw: st.DrawFn) -> list[Entry]:
    """Entries of a run whose actions overlapped at random, some of them undone before."""
    ledger = Ledger()
    running: list[Entry] = []
    for number in range(draw(st.integers(0, 9))):
        running.append(ledger.begin(Entry(f"k-{number}", CONTRACT, number)))
        for _ in range(draw(st.integers(0, len(running)))):
            settles(ledger, running.pop(draw(st.integers(0, len(running) - 1))), draw)
    while running:
        settles(ledger, running.pop(draw(st.integers(0, len(running) - 1))), draw)
    for entry in ledger.to_undo():
        if draw(st.integers(0, 3)) == 0:
            ledger.move(entry, Step.UNDO)
            ledger.move(entry, Step.SUCCEED)
    return reverse_completion(ledger.to_undo())


def settles(ledger: Ledger, entry: Entry, draw: st.DrawFn) -> None:
    if draw(st.integers(0, 4)) == 0:
        ledger.doubt(entry, "timed_out")
    else:
        ledger.complete(entry, None)


def may_go(plan: list[Entry], number: int, finished: set[int]) -> bool:
    """The definition, word by word."""
    return not any(
        other.after >= plan[number].sequence
        for n, other in enumerate(plan)
        if n != number and n not in finished
    )


def taken_now(order: CausalOrder) -> list[int]:
    found = []
    while (number := order.take()) is not None:
        found.append(number)
    return found


@given(plans(), st.data())
def test_what_may_go_is_what_the_definition_says(plan: list[Entry], data: st.DataObject) -> None:
    order = CausalOrder(plan)
    running: list[int] = []
    finished: set[int] = set()
    while len(finished) < len(plan):
        before = set(running)
        new = taken_now(order)
        assert new == sorted(new), "the first of the plan goes first"
        running += new
        expected = {n for n in range(len(plan)) if n not in finished and may_go(plan, n, finished)}
        assert set(running) == expected
        assert len(running) == len(before) + len(new), "none is taken twice"
        done = running.pop(data.draw(st.integers(0, len(running) - 1)))
        finished.add(done)
        order.finish(done)
    assert taken_now(order) == []


@given(plans(), st.integers(1, 4))
def test_what_is_drained_suits_undoing_it_one_by_one(plan: list[Entry], first: int) -> None:
    order = CausalOrder(plan)
    finished: set[int] = set()
    for _ in range(first):
        number = order.take()
        if number is not None:
            finished.add(number)
            order.finish(number)
    left = order.drain()
    assert sorted([*finished, *left]) == list(range(len(plan)))
    for number in left:
        assert may_go(plan, number, finished)
        finished.add(number)


@given(plans())
def test_what_is_carried_keeps_its_order(plan: list[Entry]) -> None:
    """Ranks, and starts only where they say something, give the same answers."""
    settled = sorted(plan, key=lambda e: e.sequence)
    carried = {}
    for rank, (entry, after) in enumerate(zip(settled, overlaps(settled), strict=True), 1):
        assert after is None or after < rank - 1
        start = rank - 1 if after is None else after
        carried[entry.key] = dataclasses.replace(entry, sequence=rank, after=start)
    renumbered = [carried[e.key] for e in plan]
    for number in range(len(plan)):
        for finished in [{n} for n in range(len(plan)) if n != number] or [set()]:
            assert may_go(plan, number, finished) == may_go(renumbered, number, finished)


def sequential(count: int) -> list[Entry]:
    return [Entry(f"k-{n}", CONTRACT, n, after=n - 1, sequence=n) for n in range(count, 0, -1)]


def test_sequential_code_is_undone_one_after_another() -> None:
    order = CausalOrder(sequential(4))
    for number in range(4):
        assert taken_now(order) == [number]
        order.finish(number)


def test_a_fan_out_is_undone_at_once() -> None:
    plan = [Entry(f"k-{n}", CONTRACT, n, after=0, sequence=n) for n in range(4, 0, -1)]
    assert taken_now(CausalOrder(plan)) == [0, 1, 2, 3]


def test_a_wide_join_waits_for_what_came_after_it() -> None:
    """a; then b and c together; then d."""
    a = Entry("a", CONTRACT, 1, after=0, sequence=1)
    c = Entry("c", CONTRACT, 3, after=1, sequence=2)
    b = Entry("b", CONTRACT, 2, after=1, sequence=3)
    d = Entry("d", CONTRACT, 4, after=3, sequence=4)
    order = CausalOrder([d, b, c, a])
    assert taken_now(order) == [0]
    order.finish(0)
    assert taken_now(order) == [1, 2]
    order.finish(1)
    assert taken_now(order) == []
    order.finish(2)
    assert taken_now(order) == [3]


def fan_outs(count: int, width: int) -> list[Entry]:
    return [
        Entry(f"k-{n}", CONTRACT, n, after=(n - 1) // width * width, sequence=n)
        for n in range(count, 0, -1)
    ]


@pytest.mark.parametrize("width", [1, 50, 6000])
def test_six_thousand_entries_take_no_time(width: int) -> None:
    began = time.process_time()
    assert CausalOrder(fan_outs(6000, width)).drain() == list(range(6000))
    assert time.process_time() - began < 1
