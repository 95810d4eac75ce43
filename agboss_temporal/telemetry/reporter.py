"""Turns what happens in a run into log records and metrics."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import Final

from temporalio import workflow

from agboss_temporal.core.entry import Entry, State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.report import VERDICTS
from agboss_temporal.observer import Observer
from agboss_temporal.telemetry import logs, names
from agboss_temporal.telemetry.metrics import Metrics

_FINAL: Final = frozenset(map(State, VERDICTS))

_Move = tuple[Entry, State, State, bool]


class Reporter(Observer):
    """Logs and counts.

    Moves are kept until workflow code may run, because the SDK's logger and meter do not work
    while events are applied. That is in the same activation, so that time and replay are the same.
    """

    def __init__(self) -> None:
        self._metrics = Metrics()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: list[_Move | CommitterInDoubt] = []
        self._elsewhere: set[str] = set()
        self._called_at: dict[str, datetime] = {}

    def entered(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the loop."""
        self._loop = loop

    def moved(self, entry: Entry, before: State) -> None:
        """Keep a move, unless it is how an entry of another run is entered here."""
        if before is State.RUNNING and entry.ordinal < 0:
            return
        elsewhere = entry.key in self._elsewhere
        if elsewhere and entry.state in _FINAL:
            self._elsewhere.discard(entry.key)
        self._keep((entry, before, entry.state, elsewhere))

    def committer_in_doubt(self, committer: CommitterInDoubt) -> None:
        """Keep it."""
        self._keep(committer)

    def unwind_begins(self, unwind: Unwind) -> None:
        """Log and count it."""
        self._flush()
        if not workflow.unsafe.is_replaying():
            logs.unwind_started(unwind)
            self._metrics.unwind_started(unwind)

    def unwind_planned(self, unwind: Unwind) -> None:
        """Measure it."""
        self._flush()
        self._metrics.unwind_planned(unwind)

    def unwind_ended(self, unwind: Unwind) -> None:
        """Log, count and measure it."""
        self._flush()
        if not workflow.unsafe.is_replaying():
            logs.unwind_ended(unwind, dict(Counter(p.verdict or "" for p in unwind.plan)))
            self._metrics.unwind_ended(unwind)

    def answered(self, entry: Entry) -> None:
        """Leave the entry's verdict to the run that has told it."""
        self._elsewhere.add(entry.key)

    def judged(self, unwind: Unwind, planned: Planned) -> None:
        """Log an undo that gave up."""
        if planned.verdict == State.FAILED:
            logs.undo_gave_up(planned)

    def _keep(self, what: _Move | CommitterInDoubt) -> None:
        assert self._loop is not None
        if not self._told:
            self._loop.call_soon(self._flush)
        self._told.append(what)

    def _flush(self) -> None:
        told, self._told = self._told, []
        for what in told:
            if isinstance(what, CommitterInDoubt):
                self._tell_of_committer(what)
            else:
                self._tell(*what)

    def _tell_of_committer(self, committer: CommitterInDoubt) -> None:
        if not workflow.unsafe.is_replaying():
            logs.committer_in_doubt(committer)
            self._metrics.action(committer.name, State.IN_DOUBT)

    def _tell(self, entry: Entry, before: State, state: State, elsewhere: bool) -> None:
        now = datetime.fromtimestamp(workflow.time(), tz=UTC)
        called_at = self._called_at.pop(entry.key, None)
        if state is State.UNDOING:
            self._called_at[entry.key] = now
        if workflow.unsafe.is_replaying():
            return
        action = entry.contract.action
        if before is State.RUNNING and state is State.OPEN:
            logs.opened(entry)
            self._metrics.action(action, names.OPENED)
        elif before is State.RUNNING and state is State.IN_DOUBT:
            logs.in_doubt(entry)
            self._metrics.action(action, State.IN_DOUBT)
        elif state is State.SEALED:
            logs.sealed(entry)
            self._metrics.action(action, State.SEALED)
        elif state in _FINAL and not elsewhere:
            self._metrics.verdict(action, state, None if called_at is None else now - called_at)
