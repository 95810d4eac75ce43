"""The ledger of a run: its entries, and the one table that says how they may move."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.errors import IllegalTransitionError

UnitPath = tuple[int, ...]
"""Where a call was made: the run is ``()``, every scope inside it adds one ordinal."""


class State(StrEnum):
    """Where an entry stands. The last six are verdicts and, with ``sealed``, final."""

    RUNNING = "running"
    OPEN = "open"
    IN_DOUBT = "in_doubt"
    NO_EFFECT = "no_effect"
    SEALED = "sealed"
    UNDOING = "undoing"
    UNDONE = "undone"
    FAILED = "failed"
    SKIPPED = "skipped"
    DENIED = "denied"
    NOT_RUN = "not_run"
    IRREVERSIBLE = "irreversible"


class Step(StrEnum):
    """What can happen to an entry."""

    COMPLETE = "complete"
    DOUBT = "doubt"
    DISMISS = "dismiss"
    SEAL = "seal"
    UNDO = "undo"
    SUCCEED = "succeed"
    REOPEN = "reopen"
    REOPEN_IN_DOUBT = "reopen_in_doubt"
    FAIL = "fail"
    SKIP = "skip"
    DENY = "deny"
    LEAVE = "leave"
    KEEP = "keep"


TRANSITIONS: Final[dict[tuple[State, Step], State]] = {
    (State.RUNNING, Step.COMPLETE): State.OPEN,
    (State.RUNNING, Step.DOUBT): State.IN_DOUBT,
    (State.RUNNING, Step.DISMISS): State.NO_EFFECT,
    (State.OPEN, Step.SEAL): State.SEALED,
    (State.IN_DOUBT, Step.SEAL): State.SEALED,
    (State.OPEN, Step.UNDO): State.UNDOING,
    (State.IN_DOUBT, Step.UNDO): State.UNDOING,
    (State.UNDOING, Step.SUCCEED): State.UNDONE,
    (State.UNDOING, Step.FAIL): State.FAILED,
    (State.UNDOING, Step.REOPEN): State.OPEN,
    (State.UNDOING, Step.REOPEN_IN_DOUBT): State.IN_DOUBT,
    (State.OPEN, Step.FAIL): State.FAILED,
    (State.IN_DOUBT, Step.FAIL): State.FAILED,
    (State.OPEN, Step.SKIP): State.SKIPPED,
    (State.IN_DOUBT, Step.SKIP): State.SKIPPED,
    (State.OPEN, Step.DENY): State.DENIED,
    (State.IN_DOUBT, Step.DENY): State.DENIED,
    (State.OPEN, Step.LEAVE): State.NOT_RUN,
    (State.IN_DOUBT, Step.LEAVE): State.NOT_RUN,
    (State.OPEN, Step.KEEP): State.IRREVERSIBLE,
    (State.IN_DOUBT, Step.KEEP): State.IRREVERSIBLE,
}
"""Every legal move. ``fail`` straight from ``open`` is an undo that could not even be started."""

UNFINISHED: Final = frozenset({State.FAILED, State.SKIPPED, State.DENIED, State.NOT_RUN})
"""Verdicts after which an effect was left behind."""

_PENDING: Final = frozenset({State.RUNNING, State.OPEN, State.IN_DOUBT, State.UNDOING})


@dataclass(slots=True, eq=False)
class Entry:
    """One execution of an action in a run.

    Attributes:
        key: Identity of the execution, stable over retry, replay and recovery.
        contract: What was declared for it when it was started.
        ordinal: Its place among all calls that the run started.
        unit: The unit in which it was started.
        state: Where it stands; changed only by `Ledger.move`.
        after: How many entries had settled when it was started.
        sequence: Place in the order in which entries settle, from 1; 0 before it settled.
        raw: The recorded result payload, opaque here; ``None`` if there is none.
        value: The object that the workflow was given for it.
        args: The recorded argument payloads, kept only where the undo needs them.
        fingerprint: Of what its undo would be given, once the payloads are let go.
        doubt: Why its outcome is unknown.
        committed: Whether its committer completed while it was being undone.
        task_queue: The queue it was scheduled on, if not the run's own.
        priority: The priority it was scheduled with.
    """

    key: str
    contract: Contract
    ordinal: int
    unit: UnitPath = ()
    state: State = State.RUNNING
    after: int = 0
    sequence: int = 0
    raw: Any = None
    value: Any = None
    args: tuple[Any, ...] = ()
    fingerprint: bytes = b""
    doubt: str | None = None
    committed: bool = False
    task_queue: str | None = None
    priority: Any = None

    @property
    def outcome(self) -> str:
        """``completed``, or ``unknown`` when nobody knows whether it took effect."""
        return "completed" if self.doubt is None else "unknown"


@dataclass(frozen=True, slots=True)
class CommitterInDoubt:
    """A committer that was started and may have taken effect; it sealed nothing."""

    key: str
    name: str
    doubt: str


class Ledger:
    """The entries of one run, oldest first."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.committers_in_doubt: list[CommitterInDoubt] = []
        self._by_key: dict[str, Entry] = {}
        self._pending: dict[str, Entry] = {}
        self._sequence = 0

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def begin(self, entry: Entry) -> Entry:
        """Enter an execution that has just been started.

        Raises:
            IllegalTransitionError: There is an entry with its key; nothing was changed.
        """
        rival = self._by_key.get(entry.key)
        if rival is not None:
            raise IllegalTransitionError(entry.key, rival.state, "begin")
        entry.after = self._sequence
        self._by_key[entry.key] = entry
        self.entries.append(entry)
        self._pending[entry.key] = entry
        return entry

    def move(self, entry: Entry, step: Step) -> None:
        """Move an entry as the table allows.

        Raises:
            IllegalTransitionError: There is no such move; nothing was changed.
        """
        target = TRANSITIONS.get((entry.state, step))
        if target is None:
            raise IllegalTransitionError(entry.key, entry.state, step)
        entry.state = target
        if target not in _PENDING:
            del self._pending[entry.key]
            entry.fingerprint = fingerprint(undo_payloads(entry))
            entry.value = entry.raw = None
            entry.args = ()

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

    def seal(self, committer: str, unit: UnitPath) -> list[Entry]:
        """Seal what a committer's completion puts past the point of no return.

        Args:
            committer: Registered name of the committer that completed.
            unit: The unit in which the committer was started.

        Returns:
            The entries that it sealed: those that name it, in its own unit, in one that encloses
            it or in one inside it.
        """

        def named(entry: Entry) -> bool:
            return entry.contract.committer == committer and related(entry.unit, unit)

        for entry in self._pending.values():
            if entry.state is State.UNDOING and named(entry):
                entry.committed = True
        return self._seal(named)

    def reopen(self, entry: Entry) -> None:
        """Record that an undo did not take place; what was committed meanwhile is sealed."""
        self.move(entry, Step.REOPEN if entry.doubt is None else Step.REOPEN_IN_DOUBT)
        if entry.committed:
            self.move(entry, Step.SEAL)

    def finish(self) -> list[Entry]:
        """Seal everything that is still open, as a normal return does."""
        return self._seal(lambda entry: entry.state is State.OPEN)

    def close(self) -> list[Entry]:
        """Put in doubt what still runs when the run closes; return it."""
        running = [e for e in self._pending.values() if e.state is State.RUNNING]
        for entry in running:
            self.doubt(entry, "abandoned")
        return running

    def pending(self) -> list[Entry]:
        """List the entries that may still move, oldest first."""
        return list(self._pending.values())

    def open_entries(self, unit: UnitPath = ()) -> list[Entry]:
        """List what took effect in a unit and is neither sealed nor undone, oldest first."""
        return [e for e in self._pending.values() if e.state is State.OPEN and within(e.unit, unit)]

    def to_undo(self, unit: UnitPath = ()) -> list[Entry]:
        """List what an unwind of a unit has to answer for: open, or in doubt and to be undone."""
        return [
            e
            for e in self._pending.values()
            if within(e.unit, unit)
            and (
                e.state is State.OPEN
                or (e.state is State.IN_DOUBT and e.contract.on_unknown == "undo")
            )
        ]

    def _seal(self, wanted: Callable[[Entry], bool]) -> list[Entry]:
        sealed = [
            e
            for e in self._pending.values()
            if e.state in (State.OPEN, State.IN_DOUBT) and wanted(e)
        ]
        for entry in sealed:
            self.move(entry, Step.SEAL)
        return sealed

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence


def undo_payloads(entry: Entry) -> tuple[Any, ...]:
    """Return the recorded payloads that an undo of an entry is given, or that stand for it."""
    if entry.contract.undo_input == "args":
        return entry.args
    return () if entry.raw is None else (entry.raw,)


def fingerprint(payloads: Iterable[Any]) -> bytes:
    """Tell payloads apart without keeping them; empty for none."""
    found = hashlib.sha256()
    empty = True
    for payload in payloads:
        empty = False
        found.update(payload.SerializeToString())
    return b"" if empty else found.digest()[:16]


def within(inner: UnitPath, outer: UnitPath) -> bool:
    """Tell whether a unit is another one or lies inside it."""
    return inner[: len(outer)] == outer


def related(one: UnitPath, other: UnitPath) -> bool:
    """Tell whether one of two units encloses the other, or both are the same."""
    return within(one, other) or within(other, one)
