"""The unwinds of a run as its history shows them: by the records of their undos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.order import reverse_completion
from agboss_temporal.core.plan import Planned, Unwind, UnwindLog
from agboss_temporal.core.report import CompensationReport, EntryReport
from agboss_temporal.core.wire import CallRecord

STEPS: Final = {
    "failed": Step.FAIL,
    "skipped": Step.SKIP,
    "denied": Step.DENY,
    "not_run": Step.LEAVE,
    "irreversible": Step.KEEP,
}
"""The moves of verdicts that no event shows."""


@dataclass(slots=True, eq=False)
class _Going:
    """An unwind and what is known of how far it is."""

    unwind: Unwind
    kept: list[Planned] = field(default_factory=list)
    flying: int = 0
    rests_since: datetime | None = None
    rests: bool = False


@dataclass(slots=True, eq=False)
class Undoing:
    """An undo of an unwind that runs, or that has ended and the workflow has not seen it."""

    going: _Going
    planned: Planned


class UnwindsSeen:
    """Builds the unwinds of a run from their undos.

    An unwind is over when a workflow task has seen its last undo end and has scheduled no other.

    Attributes:
        now: Time of the newest workflow task that was completed.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.now: datetime | None = None
        self._ledger = ledger
        self._log = UnwindLog()
        self._goings: dict[int, _Going] = {}
        self._unseen: list[Undoing] = []

    def seen(self, at: datetime | None) -> None:
        """A workflow task that began at a time has seen all that came before."""
        self._rest()
        self.now = at
        for undoing in self._unseen:
            undoing.planned.ended_at = at
            going = undoing.going
            going.flying -= 1
            going.rests = going.flying == 0
            going.rests_since = at
        self._unseen.clear()

    def undo(
        self, event_id: int, record: CallRecord, entry: Entry, kept: Mapping[str, Any]
    ) -> Undoing:
        """An undo was scheduled."""
        if record.unwind is None or record.unwind < 1:
            raise HistoryError(event_id, f"the undo of {entry.key} names no unwind")
        going = self._goings.get(record.unwind)
        if going is None:
            going = self._begin(event_id, record, kept)
        else:
            going.unwind.ended_at = None
        going.rests = False
        going.flying += 1
        while going.kept and reverse_completion([going.kept[0].entry, entry])[1] is entry:
            self._keep(going, self.now)
        planned = Planned(entry, outcome=entry.outcome, started_at=self.now)
        going.unwind.plan.append(planned)
        self._ledger.move(entry, Step.UNDO)
        return Undoing(going, planned)

    def ended(self, undoing: Undoing, reason: str | None) -> None:
        """An undo ended."""
        planned = undoing.planned
        self._ledger.move(planned.entry, Step.SUCCEED if reason is None else Step.FAIL)
        planned.verdict = str(planned.entry.state)
        planned.reason = reason
        self._unseen.append(undoing)

    def complete(
        self, event_id: int, report: CompensationReport, entries: Mapping[str, Entry]
    ) -> None:
        """Add what only the report of the run's error tells: verdicts without a call.

        Args:
            event_id: The event that closed the run.
            report: That report.
            entries: The entries of the run by key.
        """
        self._rest()
        for each in report.unwinds:
            going = self._goings.get(each.ordinal)
            if going is None:
                unwind = Unwind(each.trigger, each.cause, each.unit, each.ordinal)
                going = self._goings[each.ordinal] = _Going(unwind)
                self._log.begin(unwind)
            going.unwind.started_at = each.started_at
            going.unwind.ended_at = each.ended_at
        for told in report.entries:
            entry, going = entries.get(told.key), self._goings.get(told.unwind)
            if entry is not None and going is not None and told.verdict is not None:
                self._add(event_id, going, entry, told)
        for ordinal, going in self._goings.items():
            places = {e.key: n for n, e in enumerate(report.entries) if e.unwind == ordinal}
            going.unwind.plan.sort(key=lambda p: places.get(p.entry.key, len(places)))
        self._log.arrange()

    def _add(self, event_id: int, going: _Going, entry: Entry, told: EntryReport) -> None:
        for planned in going.unwind.plan:
            if planned.entry is entry:
                break
        else:
            planned = Planned(entry, outcome=told.outcome)
            planned.started_at, planned.ended_at = told.started_at, told.ended_at
            step = STEPS.get(told.verdict or "")
            if step is not None:
                if entry.state is State.SEALED:
                    self._ledger.take_back(entry)
                self._ledger.move(entry, step)
                planned.verdict = str(entry.state)
                planned.reason = told.reason
                going.unwind.plan.append(planned)
        if planned.verdict != told.verdict:
            raise HistoryError(
                event_id,
                f"the run's report says that {entry.key} is {told.verdict}, its events say "
                f"that it is {entry.state}",
            )

    def report(self, also_failed: Iterable[str]) -> CompensationReport:
        """Return the report after the last event."""
        self._rest()
        return self._log.report(self._ledger, also_failed)

    def _begin(self, event_id: int, record: CallRecord, kept: Mapping[str, Any]) -> _Going:
        assert record.unwind is not None
        unwind = Unwind(record.trigger or "unknown", record.cause, record.label)
        unwind.started_at = self.now
        going = self._goings[record.unwind] = _Going(unwind)
        entries = []
        for key, row in kept.items():
            if row is None or not row.entry.contract.irreversible:
                raise HistoryError(event_id, f"{key} is not an irreversible action of the run")
            entries.append(row.entry)
        going.kept = [Planned(e, outcome=e.outcome) for e in reverse_completion(entries)]
        self._log.begin(unwind)
        unwind.ordinal = record.unwind
        return going

    def _keep(self, going: _Going, at: datetime | None) -> None:
        planned = going.kept.pop(0)
        if planned.entry.state in (State.OPEN, State.IN_DOUBT):
            self._ledger.move(planned.entry, Step.KEEP)
        planned.verdict = "irreversible"
        planned.started_at = planned.ended_at = at
        going.unwind.plan.append(planned)

    def _rest(self) -> None:
        """End the unwinds that went no further after what a workflow task has seen."""
        for going in self._goings.values():
            if going.rests:
                going.rests = False
                while going.kept:
                    self._keep(going, going.rests_since)
                assert going.rests_since is not None
                self._log.end(going.unwind, going.rests_since)
