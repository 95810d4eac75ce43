"""Turns what happens in a run into log records, metrics and spans."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from temporalio import workflow

from agboss_temporal.core.entry import PENDING, Entry, State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.report import VERDICTS
from agboss_temporal.observer import Observer
from agboss_temporal.telemetry import logs, names
from agboss_temporal.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from agboss_temporal.telemetry.spans import Spans

_FINAL: Final = frozenset(map(State, VERDICTS))

_Move = tuple[Entry, State, State, bool]


class Reporter(Observer):
    """Logs, counts and traces.

    Moves are kept until workflow code may run, because the SDK's logger and meter do not work
    while events are applied. That is in the same activation, so that time and replay are the same.

    Args:
        spans: The spans of the run, if there are any.
    """

    def __init__(self, spans: Spans | None = None) -> None:
        self._spans = spans
        self._metrics = Metrics()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: list[_Move | CommitterInDoubt] = []
        self._elsewhere: set[str] = set()
        self._called_at: dict[str, datetime] = {}

    def entered(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the loop."""
        self._loop = loop

    def main_begins(self) -> None:
        """Trace from here."""
        if self._spans is not None:
            self._spans.main_begins()

    def starting(self, entry: Entry, input: Any) -> AbstractContextManager[None]:
        """Trace the call."""
        if self._spans is None:
            return super().starting(entry, input)
        return self._spans.starting(entry, input)

    def moved(self, entry: Entry, before: State) -> None:
        """Keep a move, unless it is how an entry of another run is entered here."""
        if before is State.RUNNING and entry.ordinal < 0:
            return
        self._keep((entry, before, entry.state, entry.key in self._elsewhere))

    def committer_in_doubt(self, committer: CommitterInDoubt) -> None:
        """Keep it."""
        self._keep(committer)

    def unwind_begins(self, unwind: Unwind) -> None:
        """Log, count and trace it."""
        self._flush()
        if self._spans is not None:
            self._spans.unwind_begins(unwind)
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
        verdicts = dict(Counter(planned.verdict or "" for planned in unwind.plan))
        if self._spans is not None:
            self._spans.unwind_ended(unwind, verdicts)
        if not workflow.unsafe.is_replaying():
            logs.unwind_ended(unwind, verdicts)
            self._metrics.unwind_ended(unwind)

    def undo_begins(self, unwind: Unwind, planned: Planned) -> None:
        """Trace it."""
        if self._spans is not None:
            self._spans.undo_begins(unwind, planned)

    def calling_undo(self, entry: Entry) -> AbstractContextManager[None]:
        """Trace the call."""
        if self._spans is None:
            return super().calling_undo(entry)
        return self._spans.calling_undo(entry)

    def link_to(self, entry: Entry) -> str | None:
        """Ask the spans of the run."""
        return None if self._spans is None else self._spans.link_to(entry)

    def answered(self, entry: Entry) -> None:
        """Leave the entry's verdict to the run that has told it."""
        self._elsewhere.add(entry.key)

    def judged(self, unwind: Unwind, planned: Planned) -> None:
        """Log an undo that gave up here, and end the span of any."""
        if self._spans is not None:
            self._spans.judged(planned)
        key = planned.entry.key
        if planned.verdict == State.FAILED and key not in self._elsewhere:
            logs.undo_gave_up(planned)
        self._elsewhere.discard(key)

    def _keep(self, what: _Move | CommitterInDoubt) -> None:
        assert self._loop is not None
        if not self._told:
            self._loop.call_soon(self._flush)
        self._told.append(what)

    def _flush(self) -> None:
        told, self._told = self._told, []
        try:
            workflow.random()
        except BaseException:
            return  # The run is being evicted, which looks like a cancel to whoever waits.
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
        if self._spans is not None:
            self._trace(self._spans, entry, before, state)
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

    def _trace(self, spans: Spans, entry: Entry, before: State, state: State) -> None:
        if before is State.RUNNING:
            spans.settled(entry, state)
        if not _may_be_undone(entry, state):
            spans.forget(entry)


def _may_be_undone(entry: Entry, state: State) -> bool:
    if state is State.IN_DOUBT:
        return entry.contract.on_unknown == "undo"
    return state in PENDING
