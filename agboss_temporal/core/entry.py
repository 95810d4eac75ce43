"""One execution of an action, and the one table that says how it may move."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.scope import UnitPath


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

PENDING: Final = frozenset({State.RUNNING, State.OPEN, State.IN_DOUBT, State.UNDOING})
"""States of an entry that may still move."""


@dataclass(slots=True, eq=False)
class Entry:
    """One execution of an action in a run.

    Attributes:
        key: Identity of the execution, stable over retry, replay and recovery.
        contract: What was declared for it when it was started.
        ordinal: Its place among all calls that the run started.
        unit: The unit that it belongs to: at first the one in which it was started.
        told: That unit as far as the records of later calls have said so.
        told_from: The same, before it was told the last time.
        told_at: How long the history was then.
        state: Where it stands; changed only by `Ledger.move`.
        after: How many entries had settled when it was started.
        sequence: Place in the order in which entries settle, from 1; 0 before it settled.
        raw: The recorded result payload, opaque here; ``None`` if there is none.
        value: The object that the workflow was given for it.
        args: The recorded argument payloads, kept only where the undo needs them.
        doubt: Why its outcome is unknown.
        committed: Whether its committer completed while it was being undone.
        task_queue: The queue it was scheduled on, if not the run's own.
        priority: The priority it was scheduled with.
        origin: Id of the workflow whose history holds it, if the unwind does not say so for all.
    """

    key: str
    contract: Contract
    ordinal: int
    unit: UnitPath = ()
    told: UnitPath = field(init=False)
    told_from: UnitPath = field(init=False)
    told_at: int = field(default=0, init=False)
    state: State = State.RUNNING
    after: int = 0
    sequence: int = 0
    raw: Any = None
    value: Any = None
    args: tuple[Any, ...] = ()
    doubt: str | None = None
    committed: bool = False
    task_queue: str | None = None
    priority: Any = None
    origin: str | None = None

    def __post_init__(self) -> None:
        self.told = self.told_from = self.unit

    @property
    def outcome(self) -> str:
        """``completed``, or ``unknown`` when nobody knows whether it took effect."""
        return "completed" if self.doubt is None else "unknown"


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
