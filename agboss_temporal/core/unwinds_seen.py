"""The unwinds of a run as its history shows them: by the records of their undos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.order import reverse_completion
from agboss_temporal.core.plan import Planned, Unwind, UnwindLog
from agboss_temporal.core.recovery import Outcome
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
    given: dict[str, Planned] | None = None
    flying: int = 0
    rests_since: datetime | None = None
    rests: bool = False


@dataclass(slots=True, eq=False)
class Undoing:
    """A call of an unwind that runs, or that has ended and the workflow has not seen it."""

    going: _Going
    planned: list[Planned] = field(default_factory=list)


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
        self._resting: list[_Going] = []
        self._adopted: list[Unwind] = []

    def adopt(self, unwind: Unwind) -> None:
        """List an unwind whose whole plan is known from the start: another run made it."""
        given = {planned.entry.key: planned for planned in unwind.plan}
        self._goings[unwind.ordinal] = _Going(unwind, given=given)
        self._log.adopt(unwind)
        self._adopted.append(unwind)

    def seen(self, at: datetime | None) -> None:
        """A workflow task that began at a time has seen all that came before."""
        self.rest()
        self.now = at
        for unwind in self._adopted:
            unwind.started_at = unwind.started_at or at
        for undoing in self._unseen:
            for planned in undoing.planned:
                planned.ended_at = planned.ended_at or at
            going = undoing.going
            going.flying -= 1
            if going.flying == 0:
                going.rests, going.rests_since = True, at
                self._resting.append(going)
        self._unseen.clear()

    def call(
        self, event_id: int, record: CallRecord, kept: Mapping[str, Entry | None], *, rest: bool
    ) -> Undoing:
        """A call of an unwind was scheduled.

        Args:
            event_id: The event.
            record: What its header says.
            kept: The irreversible actions that the record names, by key.
            rest: Whether it stands for all that is left, or a part of it; then what is
                irreversible has its verdict already.
        """
        if record.unwind is None or record.unwind < 1:
            raise HistoryError(event_id, "it belongs to an unwind, and its record names none")
        going = self._goings.get(record.unwind)
        if going is None:
            going = self._begin(event_id, record, kept)
        else:
            going.unwind.ended_at = None
        going.rests = False
        going.flying += 1
        while rest and going.kept:
            self._keep(going, self.now)
        return Undoing(going)

    def undo(self, event_id: int, undoing: Undoing, entry: Entry) -> None:
        """An entry is undone by a call of an unwind."""
        going = undoing.going
        while going.kept and reverse_completion([going.kept[0].entry, entry])[1] is entry:
            self._keep(going, self.now)
        if going.given is not None:
            planned = going.given.get(entry.key)
            if planned is None:
                raise HistoryError(event_id, f"the plan of the unwind does not have {entry.key}")
        else:
            planned = Planned(entry, outcome=entry.outcome)
            going.unwind.plan.append(planned)
        planned.started_at = self.now
        self._ledger.move(entry, Step.UNDO)
        undoing.planned.append(planned)

    def ended(self, undoing: Undoing, reason: str | None) -> None:
        """An undo ended."""
        for planned in undoing.planned:
            self._ledger.move(planned.entry, Step.SUCCEED if reason is None else Step.FAIL)
            planned.verdict = str(planned.entry.state)
            planned.reason = reason
        self._unseen.append(undoing)

    def answered(self, undoing: Undoing, outcomes: Sequence[Outcome]) -> None:
        """A child workflow ended that had taken over entries; each gets what it says of them."""
        for planned, outcome in zip(undoing.planned, outcomes, strict=True):
            entry = planned.entry
            if outcome.step not in (Step.SUCCEED, Step.FAIL):
                self._ledger.reopen(entry)
            if entry.state is State.SEALED:
                undoing.going.unwind.plan.remove(planned)
                continue
            self._ledger.move(entry, outcome.step)
            planned.verdict = str(entry.state)
            planned.reason = outcome.reason
            planned.started_at = outcome.started_at or planned.started_at
            planned.ended_at = outcome.ended_at
        self._unseen.append(undoing)

    def resulted(self, event_id: int, unwind: int, outcomes: Mapping[str, Outcome]) -> None:
        """Add what only the result of a workflow tells that has executed a plan.

        Args:
            event_id: The event that closed the run.
            unwind: Ordinal of the unwind.
            outcomes: What became of each entry, by key.
        """
        self.rest()
        going = self._goings[unwind]
        keys = [planned.entry.key for planned in going.unwind.plan]
        if sorted(keys) != sorted(outcomes):
            raise HistoryError(event_id, "the run's result answers for other entries than its plan")
        for planned in going.unwind.plan:
            outcome = outcomes[planned.entry.key]
            if planned.verdict is None:
                planned.started_at, planned.ended_at = outcome.started_at, outcome.ended_at
                self._decide(planned, outcome.verdict, outcome.reason)
            self._agree(event_id, planned, outcome.verdict, "result")
        if going.unwind.ended_at is None and self.now is not None:
            self._log.end(going.unwind, self.now)

    def complete(
        self, event_id: int, report: CompensationReport, entries: Mapping[str, Entry]
    ) -> None:
        """Add what only the report of the run's error tells: verdicts without a call.

        Args:
            event_id: The event that closed the run.
            report: That report.
            entries: The entries of the run by key.
        """
        self.rest()
        for each in report.unwinds:
            going = self._goings.get(each.ordinal)
            if going is None:
                unwind = Unwind(each.trigger, each.cause, each.unit, each.ordinal)
                going = self._goings[each.ordinal] = _Going(unwind)
                self._log.begin(unwind)
            going.unwind.started_at = each.started_at
            going.unwind.ended_at = each.ended_at
        plans = {
            ordinal: {planned.entry.key: planned for planned in going.unwind.plan}
            for ordinal, going in self._goings.items()
        }
        for told in report.entries:
            entry = entries.get(told.key)
            if entry is not None and told.unwind in plans and told.verdict is not None:
                self._add(event_id, plans[told.unwind], entry, told)
        self._log.arrange()

    def _add(
        self, event_id: int, plan: dict[str, Planned], entry: Entry, told: EntryReport
    ) -> None:
        planned = plan.get(entry.key)
        if planned is None:
            planned = plan[entry.key] = Planned(entry, outcome=told.outcome)
            if told.verdict in STEPS:
                self._goings[told.unwind].unwind.plan.append(planned)
        if planned.verdict is None and entry.state is not State.UNDOING:
            planned.started_at, planned.ended_at = told.started_at, told.ended_at
            self._decide(planned, told.verdict, told.reason)
        self._agree(event_id, planned, told.verdict, "report")

    def _decide(self, planned: Planned, verdict: str | None, reason: str | None) -> None:
        """Give an entry a verdict that no event shows, if it can be such a one."""
        step, entry = STEPS.get(verdict or ""), planned.entry
        if step is not None:
            if entry.state is State.SEALED:
                self._ledger.take_back(entry)
            self._ledger.move(entry, step)
            planned.verdict = str(entry.state)
            planned.reason = reason

    def _agree(self, event_id: int, planned: Planned, verdict: str | None, where: str) -> None:
        if planned.verdict != verdict:
            raise HistoryError(
                event_id,
                f"the run's {where} says that {planned.entry.key} is {verdict}, its events say "
                f"that it is {planned.entry.state}",
            )

    def report(self, also_failed: Iterable[str]) -> CompensationReport:
        """Return the report after the last event."""
        self.rest()
        for unwind in self._log:
            going = self._goings[unwind.ordinal]
            if (
                going.given is None
            ):  # Its undos do not begin in the order of the plan if they overlap.
                planned = {id(each.entry): each for each in unwind.plan}
                order = reverse_completion(each.entry for each in unwind.plan)
                unwind.plan[:] = [planned[id(entry)] for entry in order]
        return self._log.report(self._ledger, also_failed)

    def _begin(self, event_id: int, record: CallRecord, kept: Mapping[str, Entry | None]) -> _Going:
        assert record.unwind is not None
        unwind = Unwind(record.trigger or "unknown", record.cause, record.label)
        unwind.started_at = self.now
        going = self._goings[record.unwind] = _Going(unwind)
        entries = []
        for key, entry in kept.items():
            if entry is None or not entry.contract.irreversible:
                raise HistoryError(event_id, f"{key} is not an irreversible action of the run")
            entries.append(entry)
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

    def rest(self) -> None:
        """End the unwinds that went no further after what a workflow task has seen."""
        for going in self._resting:
            if going.rests:
                going.rests = False
                while going.kept:
                    self._keep(going, going.rests_since)
                assert going.rests_since is not None
                self._log.end(going.unwind, going.rests_since)
        self._resting.clear()
