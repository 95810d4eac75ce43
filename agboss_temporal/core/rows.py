"""The entries of a run, and what its history says beside them, while it is folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agboss_temporal.core.entry import Entry
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.facts import Call
from agboss_temporal.core.judging import Judged
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.run_ledger import RunEntry, UndoCall


@dataclass(slots=True, eq=False)
class Row:
    """An entry and what the history says beside it."""

    entry: Entry
    call: Call | None = None
    result: Any = None
    args: Sequence[Any] = ()
    settled_event_id: int | None = None
    scheduled_at: datetime | None = None
    settled_at: datetime | None = None
    carried: bool = False
    recorded: bool = True
    may_settle_late: bool = False
    dismissed_as: str | None = None
    judged: Judged | None = None
    undos: list[UndoCall] = field(default_factory=list)
    handed_to: str | None = None

    def result_of_fold(self) -> RunEntry:
        """Describe it."""
        entry, call = self.entry, self.call
        return RunEntry(
            key=entry.key,
            contract=entry.contract,
            ordinal=entry.ordinal,
            unit=entry.unit,
            state=entry.state,
            sequence=entry.sequence,
            after=entry.after,
            doubt=entry.doubt,
            result=self.result,
            args=tuple(self.args),
            carried=self.carried,
            recorded=self.recorded,
            call_id=call.call_id if call else "",
            event_id=call.event_id if call else None,
            settled_event_id=self.settled_event_id,
            scheduled_at=self.scheduled_at,
            settled_at=self.settled_at,
            task_queue=entry.task_queue,
            priority=entry.priority,
            undos=tuple(self.undos),
            handed_to=self.handed_to,
        )


class Rows:
    """The entries of a run by key, in the order in which they were started.

    Args:
        ledger: The ledger that they are entered in.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_key: dict[str, Row] = {}
        self._order: list[Row] = []

    def __iter__(self) -> Iterator[Row]:
        return iter(self._order)

    def get(self, key: str) -> Row | None:
        """Return the entry with a key."""
        return self._by_key.get(key)

    def entries(self) -> dict[str, Entry]:
        """Return the entries by key."""
        return {key: row.entry for key, row in self._by_key.items()}

    def enter(self, row: Row, event_id: int) -> None:
        """Enter an execution that an event has started.

        Raises:
            HistoryError: There is one with its key.
        """
        key = row.entry.key
        if key in self._by_key:
            raise HistoryError(event_id, f"there is an action with key {key} already")
        self._by_key[key] = row
        self._order.append(row)
        self._ledger.begin(row.entry)

    def rename(self, row: Row, key: str) -> None:
        """Give an entry the key that later records call it by."""
        del self._by_key[row.entry.key]
        self._by_key[key] = row
        self._ledger.rename(row.entry, key)


def ordinal_of(key: str, otherwise: int) -> int:
    """Return the ordinal that ends a key."""
    tail = key.rpartition("-")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 10 else otherwise
