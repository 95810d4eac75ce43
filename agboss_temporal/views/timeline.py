"""A run from left to right: its actions, what stopped it, and below each action its undo.

This says what stands where. `layout` gives it a size, and three views draw it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from agboss_temporal.core.entry import UNFINISHED, State
from agboss_temporal.core.report import TRIGGERS, UnwindReport
from agboss_temporal.core.run_ledger import RunEntry, RunLedger
from agboss_temporal.core.scope import path_text
from agboss_temporal.views import looks
from agboss_temporal.views.looks import Tone

MAX_STEPS: Final = 60
"""How many actions are drawn one by one; runs of others are drawn as one."""

_EDGE: Final = 10
"""How many of the first and of the last actions are always drawn."""

_NEVER_UNDONE: Final = {
    State.RUNNING: None,
    State.NO_EFFECT: None,
    State.SEALED: None,
    State.IN_DOUBT: None,
    State.OPEN: None,
}


@dataclass(frozen=True, slots=True)
class Card:
    """One box.

    Attributes:
        name: Registered name of the action or the undo.
        state: Its state, with a symbol.
        tone: Its tone.
        notes: Further lines.
        ran: Whether anything was executed for it.
    """

    name: str
    state: str
    tone: Tone
    notes: tuple[str, ...] = ()
    ran: bool = True

    @property
    def hint(self) -> str:
        """All of it on one line."""
        return " | ".join([self.name, self.state, *self.notes])


@dataclass(frozen=True, slots=True)
class StepColumn:
    """An action, and what undid it."""

    action: Card
    undo: Card | None


@dataclass(frozen=True, slots=True)
class GapColumn:
    """A number of actions that are not drawn one by one."""

    count: int
    states: str


@dataclass(frozen=True, slots=True)
class StopColumn:
    """What stopped a run, or a part of it: the start of an unwind, or the end of the run."""

    title: str
    notes: tuple[str, ...]
    tone: Tone


TimelineColumn: TypeAlias = StepColumn | GapColumn | StopColumn


def timeline(ledger: RunLedger, most: int = MAX_STEPS) -> list[TimelineColumn]:
    """Put a run into columns, in the order of time.

    Args:
        ledger: The run.
        most: How many actions are drawn one by one.
    """
    drawn = _drawn(ledger.entries, most)
    stops = _stops(ledger)
    writer = _Writer(ledger)
    columns: list[TimelineColumn] = []
    hidden: list[RunEntry] = []
    for at in range(len(ledger.entries) + 1):
        here = [writer.unwind(unwind) for place, unwind in stops if place == at]
        shown = at < len(ledger.entries) and drawn[at]
        if hidden and (here or shown or at == len(ledger.entries)):
            columns.append(GapColumn(len(hidden), looks.tally(e.state for e in hidden)))
            hidden = []
        columns += here
        if shown:
            columns.append(writer.step(ledger.entries[at]))
        elif at < len(ledger.entries):
            hidden.append(ledger.entries[at])
    if columns and isinstance(columns[-1], StopColumn) and writer.ended_by(stops):
        return [*columns[:-1], writer.both(columns[-1])]
    return [*columns, writer.end()]


def _drawn(entries: Sequence[RunEntry], most: int) -> list[bool]:
    """Choose the actions that are drawn one by one: the edges, and what needs attention."""
    if len(entries) <= most:
        return [True] * len(entries)
    edge = min(_EDGE, most // 4)
    chosen = [n < edge or n >= len(entries) - edge for n in range(len(entries))]
    special = [n for n, e in enumerate(entries) if not chosen[n] and _needs_attention(e)]
    room = max(most - 2 * edge, 0)
    for number in [*special[: room - room // 2], *special[len(special) - room // 2 :]]:
        chosen[number] = True
    return chosen


def _needs_attention(entry: RunEntry) -> bool:
    return entry.state in UNFINISHED or entry.state in (State.OPEN, State.IN_DOUBT, State.UNDOING)


def _stops(ledger: RunLedger) -> list[tuple[int, UnwindReport]]:
    """Find for each unwind how many actions had been started when it began."""
    return [(_started_before(ledger, unwind), unwind) for unwind in ledger.report.unwinds]


def _started_before(ledger: RunLedger, unwind: UnwindReport) -> int:
    calls = [u.event_id for e in ledger for u in e.undos if u.unwind == unwind.ordinal]
    if calls:
        first = min(calls)
        return sum(1 for e in ledger if e.event_id is None or e.event_id < first)
    if unwind.started_at is None:
        return len(ledger.entries)
    began = unwind.started_at
    return sum(1 for e in ledger if e.scheduled_at is None or e.scheduled_at <= began)


class _Writer:
    """Describes the columns of one run."""

    def __init__(self, ledger: RunLedger) -> None:
        self._ledger = ledger
        self._reasons = {answer.key: answer.reason for answer in ledger.report.entries}
        started = sorted((e.undos[0].event_id, e.key) for e in ledger if e.undos)
        self._turns = {key: turn for turn, (_, key) in enumerate(started, 1)}
        times = [e.scheduled_at for e in ledger if e.scheduled_at is not None]
        self._zero = min(times, default=None)

    def step(self, entry: RunEntry) -> StepColumn:
        return StepColumn(self._action(entry), self._undo(entry))

    def unwind(self, unwind: UnwindReport) -> StopColumn:
        what = "unwind" if unwind.unit is None else f"unwind of unit {unwind.unit}"
        notes = (unwind.cause or "", f"{what} {self._since(unwind.started_at)}".rstrip())
        return StopColumn(unwind.trigger, tuple(filter(None, notes)), "bad")

    def ended_by(self, stops: Sequence[tuple[int, UnwindReport]]) -> bool:
        """Tell whether the last unwind was that of the run, which then was closed."""
        return self._ledger.is_closed and bool(stops) and stops[-1][1].trigger in TRIGGERS

    def both(self, unwind: StopColumn) -> StopColumn:
        """Put the last unwind and the end of the run into one column."""
        end = self.end()
        how, _, what = end.title.partition(" ")
        return StopColumn(
            f"{how} {unwind.title}", (*unwind.notes, f"then {what}", *end.notes), end.tone
        )

    def end(self) -> StopColumn:
        end = self._ledger.end
        if end is None:
            return StopColumn("… open", (f"event {self._ledger.last_event_id}",), "busy")
        tone = looks.END_TONES.get(end.how, "bad")
        symbol = {"good": "■", "quiet": "→"}.get(tone, "✗")
        notes = (end.failure_type or "", self._since(end.at))
        return StopColumn(f"{symbol} {end.how}", tuple(filter(None, notes)), tone)

    def _action(self, entry: RunEntry) -> Card:
        if entry.doubt is not None:
            state, tone = f"? {entry.doubt}", looks.TONES[State.IN_DOUBT]
        elif entry.state in _NEVER_UNDONE:
            state, tone = looks.state_text(entry.state), looks.TONES[entry.state]
        else:
            state, tone = "● done", ""
        where = f"unit {path_text(entry.unit)}" if entry.unit else ""
        if entry.carried:
            where = "from an earlier run"
        notes = (self._since(entry.scheduled_at), where)
        return Card(entry.contract.action, state, tone, tuple(filter(None, notes)))

    def _undo(self, entry: RunEntry) -> Card | None:
        calls = entry.undos
        if not calls and entry.state in _NEVER_UNDONE:
            return self._missing(entry)
        turn = f"undo {self._turns[entry.key]}" if calls else ""
        since = self._since(calls[0].scheduled_at) if calls else ""
        reason = self._reasons.get(entry.key) or _reason(entry) or ""
        when = ", ".join(filter(None, (turn, since)))
        return Card(
            calls[-1].activity if calls else entry.contract.undo or "no undo",
            looks.state_text(entry.state),
            looks.TONES[entry.state],
            tuple(filter(None, (when, reason, looks.undo_text(entry, None)))),
            ran=bool(calls),
        )

    def _missing(self, entry: RunEntry) -> Card | None:
        """Describe the undo that a closed run lacks."""
        end = self._ledger.end
        if end is None or end.how == "continued_as_new" or entry.state is not State.OPEN:
            return None
        return Card(entry.contract.undo or "no undo", "○ nothing undid it", "open", ran=False)

    def _since(self, time: datetime | None) -> str:
        if time is None or self._zero is None:
            return ""
        return f"+{_duration((time - self._zero).total_seconds())}"


def _reason(entry: RunEntry) -> str | None:
    return entry.undos[-1].reason if entry.undos else None


def _duration(seconds: float) -> str:
    return " ".join(_parts(max(seconds, 0)))


def _parts(seconds: float) -> Iterator[str]:
    if seconds < 100:
        yield f"{seconds:.2f} s"
    elif seconds < 2 * 3600:
        yield f"{seconds // 60:.0f} min"
        yield f"{seconds % 60:.0f} s"
    elif seconds < 2 * 86400:
        yield f"{seconds // 3600:.0f} h"
        yield f"{seconds % 3600 // 60:.0f} min"
    else:
        yield f"{seconds // 86400:.0f} d"
        yield f"{seconds % 86400 // 3600:.0f} h"
