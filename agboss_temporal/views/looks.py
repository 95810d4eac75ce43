"""How a state looks: a symbol, a tone, and words. Never the colour alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias

from agboss_temporal.core.entry import State
from agboss_temporal.core.run_ledger import RunEntry, RunLedger

Tone: TypeAlias = Literal["", "good", "bad", "doubt", "open", "busy", "quiet"]

SYMBOLS: Final[dict[str, str]] = {
    State.RUNNING: "…",
    State.OPEN: "○",
    State.IN_DOUBT: "?",
    State.NO_EFFECT: "-",
    State.SEALED: "■",
    State.UNDOING: "↶",
    State.UNDONE: "✓",
    State.FAILED: "✗",
    State.SKIPPED: "»",
    State.DENIED: "⊘",
    State.NOT_RUN: "∅",
    State.IRREVERSIBLE: "!",
}

TONES: Final[dict[str, Tone]] = {
    State.RUNNING: "busy",
    State.OPEN: "open",
    State.IN_DOUBT: "doubt",
    State.NO_EFFECT: "quiet",
    State.SEALED: "quiet",
    State.UNDOING: "busy",
    State.UNDONE: "good",
    State.FAILED: "bad",
    State.SKIPPED: "bad",
    State.DENIED: "bad",
    State.NOT_RUN: "bad",
    State.IRREVERSIBLE: "open",
}

STATUS_TONES: Final[dict[str, Tone]] = {
    "completed": "good",
    "partial": "bad",
    "failed": "bad",
    "running": "busy",
    "pending": "busy",
    "manual": "open",
}

END_TONES: Final[dict[str, Tone]] = {
    "completed": "good",
    "continued_as_new": "quiet",
    "not_started": "quiet",
    "running": "busy",
}


def state_text(state: str) -> str:
    """Write a state with its symbol."""
    return f"{SYMBOLS.get(state, '·')} {state}"


def counted(count: int, what: str) -> str:
    """Write a number of things."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def tally(states: Iterable[str]) -> str:
    """Count states, as in ``2 undone, 1 failed``, in the order of the table above."""
    found = Counter(map(str, states))
    return ", ".join(f"{found[state]} {state}" for state in SYMBOLS if found[state])


def clock(time: datetime | None, day: str | None = None) -> str:
    """Write a time in UTC, without the date if it is that of the whole view."""
    if time is None:
        return ""
    text = f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03}"
    return text[11:] if text[:10] == day else text


def only_day(ledger: RunLedger) -> str | None:
    """Return the day on which everything took place, if it was one."""
    times = [t for e in ledger.entries for t in (e.scheduled_at, e.settled_at)]
    times += [t for u in ledger.report.unwinds for t in (u.started_at, u.ended_at)]
    days = {f"{time:%Y-%m-%d}" for time in times if time is not None}
    return days.pop() if len(days) == 1 else None


def undo_text(entry: RunEntry, reason: str | None, decided_by: str | None = None) -> str:
    """Tell how the undo of an entry went: calls, attempts, and why not."""
    parts: list[str] = []
    if len(entry.undos) > 1:
        parts.append(f"{len(entry.undos)} calls")
    attempts = sum(undo.attempts for undo in entry.undos)
    if attempts:
        parts.append(counted(attempts, "attempt"))
    elif entry.undos and entry.undos[-1].outcome is None:
        parts.append("started")
    if entry.undos and entry.undos[-1].explicit:
        parts.append("called by the workflow")
    if entry.undos and entry.undos[-1].by:
        parts.append(f"run by {entry.undos[-1].by}")
    if decided_by:
        parts.append(f"decided by {decided_by}")
    if reason:
        parts.append(reason)
    return ", ".join(parts)


def place_in_run(entry: RunEntry) -> str:
    """Number an entry as its key does; what an earlier run handed over has no number here."""
    return "^" if entry.carried or entry.ordinal < 0 else str(entry.ordinal)
