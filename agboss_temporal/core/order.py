"""The order in which the entries of a plan are undone."""

from __future__ import annotations

from collections.abc import Iterable

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
