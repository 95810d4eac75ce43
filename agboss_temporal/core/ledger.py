"""The ledger of a run: its entries, and what happens to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from agboss_temporal.core.entry import (
    PENDING,
    TRANSITIONS,
    Entry,
    State,
    Step,
    fingerprint,
    undo_payloads,
)
from agboss_temporal.core.errors import IllegalTransitionError
from agboss_temporal.core.pending import Pending
from agboss_temporal.core.scope import Scope, UnitPath, ended_between, related

MAX_IN_DOUBT: Final = 100
"""How many calls in doubt a run lists; older ones are only counted, so that a run that lives for
years does not grow."""

NOT_SENT: Final = -1
"""Stands for the workflow task in which the end of a unit was told in vain."""

MAX_CLOSED: Final = 1000
"""How many closed entries are remembered, so that a repeat of their undo is known as one."""


@dataclass(frozen=True, slots=True)
class CommitterInDoubt:
    """A committer that was started and may have taken effect; it sealed nothing."""

    key: str
    name: str
    doubt: str


class Watch(Protocol):
    """Is told of every move in a ledger, after it."""

    def moved(self, entry: Entry, before: State) -> None:
        """Learn that an entry has moved."""

    def committer_in_doubt(self, committer: CommitterInDoubt) -> None:
        """Learn that a committer may have taken effect."""


class Ledger:
    """The entries of one run that may still move, oldest first; what is final leaves it.

    Args:
        watch: Who is told of moves.

    Attributes:
        committers_in_doubt: Committers that may have taken effect, oldest first.
        omitted_in_doubt: How many calls in doubt are no longer listed, here and in the entries.
    """

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch
        self.committers_in_doubt: list[CommitterInDoubt] = []
        self.omitted_in_doubt = 0
        self._pending = Pending()
        self._reported: dict[str, Entry] = {}
        self._closed: dict[tuple[str | None, bytes], None] = {}
        self._sequence = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._pending)

    def begin(self, entry: Entry) -> Entry:
        """Enter an execution that has just been started.

        Raises:
            IllegalTransitionError: There is an entry with its key; nothing was changed.
        """
        rival = self._pending.get(entry.key)
        if rival is not None:
            raise IllegalTransitionError(entry.key, rival.state, "begin")
        entry.after = self._sequence
        self._pending.add(entry)
        return entry

    def move(self, entry: Entry, step: Step) -> None:
        """Move an entry as the table allows.

        Raises:
            IllegalTransitionError: There is no such move; nothing was changed.
        """
        target = TRANSITIONS.get((entry.state, step))
        if target is None:
            raise IllegalTransitionError(entry.key, entry.state, step)
        before, entry.state = entry.state, target
        self._reported.pop(entry.key, None)
        if target not in PENDING:
            self._let_go(entry)
        if self._watch is not None:
            self._watch.moved(entry, before)

    def complete(self, entry: Entry, raw: Any) -> None:
        """Record that an execution completed, with its recorded result payload."""
        self.move(entry, Step.COMPLETE)
        entry.raw = raw
        entry.sequence = self._next()

    def doubt(self, entry: Entry, kind: str) -> None:
        """Record that an execution was started and has no result."""
        self.move(entry, Step.DOUBT)
        entry.doubt = kind
        entry.sequence = self._next()
        if entry.contract.on_unknown == "report":
            self._reported[entry.key] = entry
            while len(self._reported) > MAX_IN_DOUBT:
                oldest = self._reported.pop(next(iter(self._reported)))
                self._pending.remove(oldest)
                self.omitted_in_doubt += 1

    def doubt_committer(self, committer: CommitterInDoubt) -> None:
        """Record that a committer was started and has no result; it seals nothing."""
        self.committers_in_doubt.append(committer)
        if len(self.committers_in_doubt) > MAX_IN_DOUBT:
            del self.committers_in_doubt[0]
            self.omitted_in_doubt += 1
        if self._watch is not None:
            self._watch.committer_in_doubt(committer)

    def seal(self, committer: str, unit: UnitPath) -> list[Entry]:
        """Seal what a committer's completion puts past the point of no return.

        Args:
            committer: Registered name of the committer that completed.
            unit: The unit in which the committer was started.

        Returns:
            The entries that it sealed: those that name it, in its own unit, in one that encloses
            it or in one inside it.
        """
        sealed = []
        for entry in self._pending.waiting_for(committer):
            if related(entry.told, unit):
                if entry.state is State.UNDOING:
                    entry.committed = True
                elif entry.state in (State.OPEN, State.IN_DOUBT):
                    self.move(entry, Step.SEAL)
                    sealed.append(entry)
        return sealed

    def reopen(self, entry: Entry) -> None:
        """Record that an undo did not take place; what was committed meanwhile is sealed."""
        self.move(entry, Step.REOPEN if entry.doubt is None else Step.REOPEN_IN_DOUBT)
        if entry.committed:
            self.move(entry, Step.SEAL)

    def take_back(self, entry: Entry) -> None:
        """Enter again what had left: a later record says that it was still to be undone."""
        entry.state = State.OPEN if entry.doubt is None else State.IN_DOUBT
        self._pending.add(entry)

    def rename(self, entry: Entry, key: str) -> None:
        """Give an entry the key that later records call it by."""
        entry.key = key
        self._pending = Pending(self._pending)

    def hand_over(self, unit: UnitPath, to: UnitPath) -> None:
        """Give what belongs to a unit that ends to one that encloses it."""
        for entry in self._pending:
            if entry.unit == unit:
                entry.unit = to

    def tell(self, at: int) -> list[UnitPath]:
        """List the units whose end the next committer's record has to tell, for entries' sake.

        What was told in the same workflow task is told again: the call that told it may be
        cancelled before it is sent.

        Args:
            at: Length of the history, which tells workflow tasks apart.
        """
        ended: set[UnitPath] = set()
        for entry in self._pending.waiting():
            if entry.told != entry.unit:
                if entry.told_at != at:
                    entry.told_from = entry.told
                entry.told, entry.told_at = entry.unit, at
            if entry.told_at in (at, NOT_SENT):
                ended.update(ended_between(entry.told_from, entry.told))
                entry.told_at = at
        return sorted(ended)

    def not_sent(self, ended: Iterable[UnitPath]) -> None:
        """Have the end of units told again: the call whose record told it was never sent."""
        for entry in self._pending:
            if any(path in ended for path in ended_between(entry.told_from, entry.told)):
                entry.told_at = NOT_SENT

    def told(self, ended: Iterable[UnitPath]) -> None:
        """Follow the hand-overs that a committer's record tells, as `tell` told them."""
        over = frozenset(ended)
        for entry in self._pending.waiting() if over else ():
            while entry.told in over:
                entry.told = entry.told[:-1]

    def open_told(self, unit: UnitPath) -> list[Entry]:
        """List what is open in a unit and all inside it, as far as records tell."""
        return [e for e in self._pending.within(unit) if e.state is State.OPEN]

    def seal_all(self, entries: Iterable[Entry]) -> None:
        """Seal entries that are open."""
        for entry in entries:
            self.move(entry, Step.SEAL)

    def seal_unit(self, unit: UnitPath, *, keep_uncommitted: bool = False) -> list[Entry]:
        """Seal what is open in a unit that ends.

        Args:
            unit: The unit.
            keep_uncommitted: Whether what still waits for a committer stays open.
        """
        return self._seal(
            lambda entry: (
                entry.state is State.OPEN
                and entry.unit == unit
                and not (keep_uncommitted and entry.contract.committer is not None)
            )
        )

    def finish(self) -> list[Entry]:
        """Seal everything that is still open, as a normal return does."""
        return self._seal(lambda entry: entry.state is State.OPEN)

    def close(self) -> list[Entry]:
        """Put in doubt what still runs when the run closes; return it."""
        running = [e for e in self._pending if e.state is State.RUNNING]
        for entry in running:
            self.doubt(entry, "abandoned")
        return running

    def pending(self) -> list[Entry]:
        """List the entries that may still move, oldest first."""
        return list(self._pending)

    def open_entries(self) -> list[Entry]:
        """List what took effect and is neither sealed nor undone, oldest first."""
        return [e for e in self._pending if e.state is State.OPEN]

    def to_undo(self, scope: Scope | None = None) -> list[Entry]:
        """List what an unwind has to answer for: open, or in doubt and to be undone."""
        return [
            e
            for e in self._pending
            if (scope is None or e.unit in scope)
            and (
                e.state is State.OPEN
                or (e.state is State.IN_DOUBT and e.contract.on_unknown == "undo")
            )
        ]

    def closed_before(self, undo: str, given: bytes) -> bool:
        """Tell whether an undo that is given this would repeat one that closed an entry.

        Args:
            undo: Registered name of the undo.
            given: Fingerprint of what it is given.
        """
        return (undo, given) in self._closed

    def _let_go(self, entry: Entry) -> None:
        self._pending.remove(entry)
        given = fingerprint(undo_payloads(entry))
        if given:
            self._closed[entry.contract.undo, given] = None
            if len(self._closed) > MAX_CLOSED:
                del self._closed[next(iter(self._closed))]
        entry.value = entry.raw = None
        entry.args = ()

    def _seal(self, wanted: Callable[[Entry], bool]) -> list[Entry]:
        sealed = [e for e in self._pending if e.state in (State.OPEN, State.IN_DOUBT) and wanted(e)]
        for entry in sealed:
            self.move(entry, Step.SEAL)
        return sealed

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence
