"""What workflows that undo for other runs have done so far, by the keys of entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agboss_temporal.core.entry import State
from agboss_temporal.core.run_ledger import MAY_HAVE_EFFECT, RunEntry, RunLedger, UndoCall


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one entry in one attempt.

    Attributes:
        key: Key of the entry.
        action: Registered name of the action.
        undo: Registered name of its undo.
        workflow_id: The workflow whose history holds the entry.
        verdict: As in a report; ``None`` while nobody knows.
        reason: For another verdict than ``undone``, an error's type or the bound that ended it.
        started_at: When the undo was started.
        ended_at: When its verdict was known.
        attempts: The attempt that settled the undo; 0 before.
    """

    key: str
    action: str
    undo: str | None
    workflow_id: str
    verdict: str | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One workflow that undoes, or has undone, entries of other runs.

    Attributes:
        workflow_id: Its id.
        run_id: Its run.
        is_open: Whether it is at work.
        tried: What its plan held, by key.
        decides: Whether a run's own unwind has handed it its part and taken its answer: what it
            left behind was given up, not interrupted.
    """

    workflow_id: str
    run_id: str
    is_open: bool
    tried: Mapping[str, Tried] = field(default_factory=dict)
    decides: bool = False


class Attempts:
    """All attempts at the entries of some runs, oldest first."""

    def __init__(self, attempts: Sequence[Attempt] = ()) -> None:
        self._attempts = attempts

    def is_undone(self, key: str) -> bool:
        """Tell whether an attempt has undone an entry."""
        return any(a.tried[key].verdict == "undone" for a in self._attempts if key in a.tried)

    def at_work(self, key: str) -> Attempt | None:
        """Return the attempt that is about to undo an entry, if there is one."""
        for attempt in self._attempts:
            if attempt.is_open and key in attempt.tried and attempt.tried[key].verdict is None:
                return attempt
        return None

    def given_up(self, key: str) -> Tried | None:
        """Return what became of an entry whose undo the run's own unwind has given up."""
        for attempt in self._attempts:
            if attempt.decides and key in attempt.tried:
                return attempt.tried[key]
        return None

    def tells_of(self, key: str, workflow_id: str | None) -> bool:
        """Tell whether a workflow that was given an entry is among the attempts."""
        return any(a.workflow_id == workflow_id and key in a.tried for a in self._attempts)

    def last_start(self, key: str) -> datetime | None:
        """Return when an undo of an entry was last started."""
        starts = [a.tried[key].started_at for a in self._attempts if key in a.tried]
        return max((s for s in starts if s is not None), default=None)

    def calls(self, key: str) -> Iterator[tuple[Attempt, Tried]]:
        """List the undos of an entry that were started, oldest first."""
        for attempt in self._attempts:
            if key in attempt.tried and attempt.tried[key].started_at is not None:
                yield attempt, attempt.tried[key]


def with_attempts(ledger: RunLedger, attempts: Attempts) -> RunLedger:
    """Add to the ledger of a closed run what recoveries have done for it since.

    Their undos are not in its history, so they stand after its last event and are settled by none.
    """
    entries = tuple(
        _with_calls(entry, attempts, ledger.last_event_id)
        if entry.state in MAY_HAVE_EFFECT
        else entry
        for entry in ledger
    )
    return replace(ledger, entries=entries)


def _with_calls(entry: RunEntry, attempts: Attempts, last_event_id: int) -> RunEntry:
    undos, state = list(entry.undos), entry.state
    for attempt, tried in attempts.calls(entry.key):
        undos.append(
            UndoCall(
                event_id=last_event_id + 1,
                activity=tried.undo or "",
                scheduled_at=tried.started_at,
                settled_at=tried.ended_at,
                attempts=tried.attempts,
                outcome={"undone": "completed"}.get(tried.verdict or "", tried.verdict),
                reason=tried.reason,
                by=attempt.workflow_id,
            )
        )
        if tried.verdict == "undone":
            state = State.UNDONE
        elif tried.verdict is None and state is not State.UNDONE:
            state = State.UNDOING
    return replace(entry, undos=tuple(undos), state=state)
