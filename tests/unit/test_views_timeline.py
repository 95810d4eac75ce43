"""The timeline: what stands where, and how much of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.entry import State
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.views.layout import MAX_WIDTH, lay_out
from agboss_temporal.views.timeline import (
    MAX_STEPS,
    GapColumn,
    StepColumn,
    StopColumn,
    TimelineColumn,
    timeline,
)
from tests.unit import ledgers


def shape(columns: list[TimelineColumn]) -> list[str]:
    return [
        f"{c.action.name}/{c.undo.name if c.undo else '-'}"
        if isinstance(c, StepColumn)
        else (f"+{c.count}" if isinstance(c, GapColumn) else f"|{c.title}")
        for c in columns
    ]


def test_each_undo_stands_below_its_action_and_the_failure_after_the_last() -> None:
    assert shape(timeline(ledgers.partial())) == [
        "reserve_stock/release_stock",
        "send_receipt/no undo",
        "charge_card/refund_card",
        "book_courier/cancel_courier",
        "notify_partner/-",
        "|✗ node-failure",
    ]


def test_a_part_that_was_undone_is_marked_where_it_stopped() -> None:
    assert shape(timeline(ledgers.two_unwinds())) == [
        "book_flight/cancel_flight",
        "book_hotel/cancel_hotel",
        "|join",
        "book_train/cancel_train",
        "|✗ run-cancel",
    ]


def test_undos_are_numbered_in_the_order_in_which_they_ran() -> None:
    steps = [c for c in timeline(ledgers.two_unwinds()) if isinstance(c, StepColumn)]
    turns = [c.undo.notes[0].partition(",")[0] for c in steps if c.undo]
    assert turns == ["undo 3", "undo 1", "undo 2"]


def test_a_closed_run_shows_that_nothing_undid_what_is_open() -> None:
    *steps, end = timeline(ledgers.terminated())
    sealed, left, cut_off = (c.undo for c in steps if isinstance(c, StepColumn))
    assert sealed is None
    assert cut_off is None
    assert left is not None
    assert (left.name, left.ran) == ("release_stock", False)
    assert isinstance(end, StopColumn)
    assert end.title == "✗ terminated"


def test_a_run_that_goes_on_shows_no_undo_that_is_missing() -> None:
    assert shape(timeline(ledgers.running())) == ["reserve_stock/-", "charge_card/-", "|… open"]


def states_of(count: int, failed: set[int]) -> RunLedger:
    ledger = ledgers.crowded(count)
    entries = tuple(
        replace(e, state=State.FAILED if n in failed else State.UNDONE)
        for n, e in enumerate(ledger.entries)
    )
    return replace(ledger, entries=entries)


@given(st.integers(0, 300), st.sets(st.integers(0, 300), max_size=100))
def test_every_action_is_drawn_or_counted(count: int, failed: set[int]) -> None:
    columns = timeline(states_of(count, failed))
    steps = [c for c in columns if isinstance(c, StepColumn)]
    gaps = [c for c in columns if isinstance(c, GapColumn)]
    assert len(steps) + sum(gap.count for gap in gaps) == count
    assert len(steps) <= MAX_STEPS
    assert not any(
        isinstance(a, GapColumn) and isinstance(b, GapColumn)
        for a, b in itertools.pairwise(columns)
    )


@pytest.mark.parametrize("count", [61, 300])
def test_what_failed_in_the_middle_is_never_folded_away(count: int) -> None:
    failed = {count // 2, count // 2 + 3}
    steps = [c for c in timeline(states_of(count, failed)) if isinstance(c, StepColumn)]
    assert sum(1 for c in steps if c.undo and c.undo.tone == "bad") == 2


@given(st.integers(0, 120))
def test_columns_overlap_nowhere_and_bands_stay_narrow(count: int) -> None:
    placed = lay_out(timeline(ledgers.crowded(count)))
    assert placed.width <= MAX_WIDTH
    for one, other in itertools.pairwise(placed.bands):
        assert one.top + one.height < other.top
    for band in placed.bands:
        for left, right in itertools.pairwise(band.columns):
            assert left.x + left.width < right.x
        assert band.columns[-1].x + band.columns[-1].width <= placed.width
    assert placed.bands[-1].top + placed.bands[-1].height < placed.height
