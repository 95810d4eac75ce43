"""Whether the rest of a plan fits into the run's own history (E8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.budget import (
    BYTES_PER_UNDO,
    EVENTS_PER_UNDO,
    MAX_BYTES,
    MAX_EVENTS,
    HistoryBudget,
)

amounts = st.integers(0, 60_000)


@given(amounts, amounts, st.integers(0, 10_000), st.integers(0, MAX_BYTES))
def test_what_fits_stays_below_the_limits_of_the_server(
    events: int, size: int, undos: int, payloads: int
) -> None:
    if HistoryBudget().fits(events, size, undos, payloads) and undos:
        assert events + undos * EVENTS_PER_UNDO <= MAX_EVENTS * 0.9
        assert size + undos * BYTES_PER_UNDO + payloads <= MAX_BYTES * 0.9


@given(amounts, amounts, st.integers(1, 10_000), st.integers(0, MAX_BYTES))
def test_less_fits_where_more_does(events: int, size: int, undos: int, payloads: int) -> None:
    budget = HistoryBudget()
    if budget.fits(events, size, undos, payloads):
        assert budget.fits(events, size, undos - 1, payloads)
        assert budget.fits(max(0, events - 1), size, undos, payloads // 2)


def test_the_usual_run_fits_and_a_very_large_one_does_not() -> None:
    budget = HistoryBudget()
    assert budget.fits(2_000, 500_000, 300, 300_000)
    assert budget.fits(6_000, 1_500_000, 1_000, 1_000_000)
    assert not budget.fits(20_000, 5_000_000, 6_000, 600_000)
    assert not budget.fits(6_000, 1_500_000, 1_000, 40 * 1024 * 1024)


def test_without_anything_left_everything_fits() -> None:
    assert HistoryBudget().fits(MAX_EVENTS * 2, MAX_BYTES * 2, 0, 0)
