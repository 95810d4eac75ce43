"""The entries of a run that may still move, found by what they wait for and where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

from agboss_temporal.core.entry import Entry
from agboss_temporal.core.scope import UnitPath, within

T = TypeVar("T")


class Pending:
    """Entries by key, oldest first.

    A run that stays open for long may hold thousands of them while others are sealed all the time.

    Args:
        entries: What it begins with.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        self._by_committer: dict[str, dict[str, Entry]] = {}
        self._by_outermost: dict[int, dict[str, Entry]] = {}
        self._outermost: dict[str, int] = {}
        for entry in entries:
            self.add(entry)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, key: str) -> Entry | None:
        """Return the entry with a key."""
        return self._entries.get(key)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        key = entry.key
        self._entries[key] = entry
        if entry.contract.committer is not None:
            self._by_committer.setdefault(entry.contract.committer, {})[key] = entry
        if entry.told:
            outermost = self._outermost[key] = entry.told[0]
            self._by_outermost.setdefault(outermost, {})[key] = entry

    def remove(self, entry: Entry) -> None:
        """Take an entry out, if it is there."""
        key = entry.key
        if self._entries.pop(key, None) is None:
            return
        if entry.contract.committer is not None:
            _take_out(self._by_committer, entry.contract.committer, key)
        outermost = self._outermost.pop(key, None)
        if outermost is not None:
            _take_out(self._by_outermost, outermost, key)

    def waiting_for(self, committer: str) -> list[Entry]:
        """List what waits for a committer."""
        return list(self._by_committer.get(committer, {}).values())

    def waiting(self) -> Iterator[Entry]:
        """List what waits for any committer."""
        return chain.from_iterable(each.values() for each in self._by_committer.values())

    def within(self, unit: UnitPath) -> list[Entry]:
        """List what is in a unit and all inside it, as far as records tell.

        What records tell of a unit only ever leads out of it, so that the outermost one stays.
        """
        if not unit:
            return list(self)
        return [e for e in self._by_outermost.get(unit[0], {}).values() if within(e.told, unit)]


def _take_out(index: dict[T, dict[str, Entry]], name: T, key: str) -> None:
    found = index[name]
    del found[key]
    if not found:
        del index[name]
