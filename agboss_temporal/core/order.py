"""The order in which the entries of a plan are undone."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from agboss_temporal.core.entry import Entry


def reverse_completion(entries: Iterable[Entry]) -> list[Entry]:
    """Order a plan newest first.

    Entries whose outcome is unknown come first, newest started first: they may be the cause of
    the failure and have no place in the order of completion. The completed ones follow, newest
    completed first.
    """
    entries = list(entries)
    unknown = [e for e in entries if e.doubt is not None]
    completed = [e for e in entries if e.doubt is None]
    unknown.sort(key=lambda e: -e.ordinal)
    completed.sort(key=lambda e: -e.sequence)
    return unknown + completed


class CausalOrder:
    """Says which entries of a plan may be undone next so that every real order is kept.

    An entry waits for all that were started after it had settled: those may build on it. Entries
    that overlapped in time do not wait for each other. Of those that may go, the first of the plan
    goes first. Entries are named by their place in the plan.

    As an entry is started before it settles, it may go when every unfinished one, itself among
    them, was started before it had settled. So it is enough to know the newest start of all.

    Args:
        plan: The entries, in the order of the plan.
    """

    def __init__(self, plan: Sequence[Entry]) -> None:
        self._sequences = [e.sequence for e in plan]
        self._waiting = sorted(range(len(plan)), key=lambda n: plan[n].sequence)
        self._ready: list[int] = []
        self._starts = [(-e.after, n) for n, e in enumerate(plan)]
        heapq.heapify(self._starts)
        self._finished = [False] * len(plan)
        self._release()

    def take(self) -> int | None:
        """Take the next entry that may be undone now; ``None`` if there is none."""
        return heapq.heappop(self._ready) if self._ready else None

    def finish(self, number: int) -> None:
        """Note that a taken entry has its verdict."""
        self._finished[number] = True
        self._release()

    def drain(self) -> list[int]:
        """Take all that is left, in an order that suits undoing it one after another."""
        left = []
        while (number := self.take()) is not None:
            left.append(number)
            self.finish(number)
        return left

    def _release(self) -> None:
        while self._starts and self._finished[self._starts[0][1]]:
            heapq.heappop(self._starts)
        newest = -self._starts[0][0] if self._starts else 0
        while self._waiting and self._sequences[self._waiting[-1]] > newest:
            heapq.heappush(self._ready, self._waiting.pop())
