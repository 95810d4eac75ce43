"""A plan is undone newest first, and what is in doubt comes before what completed (rule R2)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, State
from agboss_temporal.core.order import reverse_completion

CONTRACT = Contract("reserve", undo="release", on_unknown="undo", undo_input="args")


@dataclass
class Call:
    started: int
    settled: int
    unknown: bool

    def entry(self) -> Entry:
        return Entry(
            f"k-{self.started}",
            CONTRACT,
            self.started,
            state=State.IN_DOUBT if self.unknown else State.OPEN,
            sequence=self.settled,
            doubt="timed_out" if self.unknown else None,
        )


@st.composite
def runs(draw: st.DrawFn) -> list[Call]:
    """Calls that started and settled in any two orders, listed in a third."""
    count = draw(st.integers(0, 8))
    settled = draw(st.permutations(range(1, count + 1)))
    unknown = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    calls = [Call(n, s, u) for n, (s, u) in enumerate(zip(settled, unknown, strict=True), 1)]
    return draw(st.permutations(calls))


def newest_first(calls: list[Call]) -> list[int]:
    """Take the call that has to go next, again and again, by asking each against all others."""
    left, order = list(calls), []
    while left:
        [chosen] = [c for c in left if not any(goes_before(o, c) for o in left if o is not c)]
        left.remove(chosen)
        order.append(chosen.started)
    return order


def goes_before(one: Call, other: Call) -> bool:
    if one.unknown != other.unknown:
        return one.unknown
    return one.started > other.started if one.unknown else one.settled > other.settled


@given(runs())
def test_the_order_is_that_of_the_oracle(calls: list[Call]) -> None:
    assert [e.ordinal for e in reverse_completion(c.entry() for c in calls)] == newest_first(calls)


@given(runs())
def test_nothing_is_lost_or_made_up_or_changed(calls: list[Call]) -> None:
    entries = [c.entry() for c in calls]
    before = list(entries)
    ordered = reverse_completion(entries)
    assert entries == before
    assert len(ordered) == len(entries)
    assert {id(e) for e in ordered} == {id(e) for e in entries}


def test_completion_counts_not_start() -> None:
    slow = Call(started=1, settled=2, unknown=False)
    quick = Call(started=2, settled=1, unknown=False)
    lost = Call(started=3, settled=3, unknown=True)
    older_lost = Call(started=0, settled=4, unknown=True)
    ordered = reverse_completion(c.entry() for c in [quick, older_lost, slow, lost])
    assert [e.ordinal for e in ordered] == [3, 0, 1, 2]
