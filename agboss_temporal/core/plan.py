"""The plan of an unwind while it goes on, and the report that is made from all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agboss_temporal.core.entry import UNFINISHED, Entry, State
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.report import (
    CompensationReport,
    EntryReport,
    InDoubtReport,
    Status,
    UnwindReport,
)

MAX_UNWINDS: Final = 20
"""How many unwinds a report keeps in full."""


@dataclass(slots=True)
class Planned:
    """An entry in the plan of an unwind, with its verdict as the unwind goes on."""

    entry: Entry
    verdict: str | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str = "completed"

    def report(self, unwind: int) -> EntryReport:
        """Describe it."""
        contract = self.entry.contract
        return EntryReport(
            key=self.entry.key,
            action=contract.action,
            undo=contract.undo,
            unwind=unwind,
            outcome=self.outcome,
            verdict=self.verdict,
            reason=self.reason,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )


@dataclass(slots=True, eq=False)
class Unwind:
    """One unwind: what started it, and its plan.

    Attributes:
        trigger: A trigger, or ``join``, ``handler``, ``explicit``.
        cause: Type of the error that started it.
        unit: Name of the unit that it unwinds; ``None`` for the run.
        ordinal: Its number in the run, from 1; 0 until it has a plan.
        started_at: When it began, in workflow time.
        ended_at: When its last verdict was known, in workflow time.
        plan: What it undoes, in its order.
        announced: Whether history knows what started it.
        origin: Id of the workflow whose history holds the entries, if that is another one.
    """

    trigger: str
    cause: str | None
    unit: str | None = None
    ordinal: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    plan: list[Planned] = dataclasses.field(default_factory=list)
    origin: str | None = None
    announced: bool = False

    @property
    def left_behind(self) -> bool:
        """Whether some planned entry has a verdict that leaves its effect."""
        return any(p.verdict in UNFINISHED for p in self.plan)

    @property
    def status(self) -> str:
        """Its own status."""
        return fold_status((p.verdict for p in self.plan), active=self.ended_at is None)

    def report(self) -> UnwindReport:
        """Describe it, without its entries."""
        return UnwindReport(
            ordinal=self.ordinal,
            trigger=self.trigger,
            cause=self.cause,
            unit=self.unit,
            status=self.status,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )


def fold_status(verdicts: Iterable[str | None], *, active: bool = False) -> Status:
    """Fold the verdicts of a plan into one status.

    Args:
        verdicts: One for each planned entry, ``None`` where it is not known yet.
        active: Whether an unwind is still at work.

    Returns:
        ``none`` without a plan; ``pending`` while an unwind is active and has not planned yet;
        ``running`` while it goes on; then ``completed`` when everything is undone, ``partial``
        when something is, ``failed`` when nothing is. An irreversible entry is never undone, so
        it keeps the status from ``completed``.
    """
    found = list(verdicts)
    if not found:
        return "pending" if active else "none"
    if active or None in found:
        return "running"
    undone = found.count("undone")
    if undone == len(found):
        return "completed"
    return "partial" if undone else "failed"


class UnwindLog:
    """The unwinds of a run: the newest in full, the older ones as numbers."""

    def __init__(self) -> None:
        self._unwinds: list[Unwind] = []
        self._older_count = 0
        self._older_verdicts: dict[str, int] = {}
        self._planned = 0

    def __iter__(self) -> Iterator[Unwind]:
        return iter(self._unwinds)

    def begin(self, unwind: Unwind) -> None:
        """List an unwind that begins."""
        self._unwinds.append(unwind)

    def plan(self, unwind: Unwind, plan: list[Planned]) -> None:
        """Give an unwind its plan and its number; one that has nothing to do is not kept.

        One that began earlier may be planned later: they are listed by their numbers, then those
        that have none yet.
        """
        self._unwinds.remove(unwind)
        if not plan:
            return
        self._planned += 1
        unwind.ordinal = self._planned
        unwind.plan = plan
        place = sum(other.ordinal > 0 for other in self._unwinds)
        self._unwinds.insert(place, unwind)

    def adopt(self, unwind: Unwind) -> None:
        """List an unwind that another run has planned and numbered."""
        self._unwinds.append(unwind)

    def arrange(self) -> None:
        """List the unwinds by their numbers."""
        self._unwinds.sort(key=lambda unwind: unwind.ordinal)

    def end(self, unwind: Unwind, at: datetime) -> None:
        """Note that an unwind has ended; only the newest are kept in full."""
        unwind.ended_at = at
        for oldest in self._unwinds[:-MAX_UNWINDS]:
            if oldest.ended_at is not None:
                self._unwinds.remove(oldest)
                self._older_count += 1
                _count(oldest.plan, self._older_verdicts)

    @property
    def left_behind(self) -> bool:
        """Whether some unwind left an effect behind."""
        return any(u.left_behind for u in self._unwinds) or not UNFINISHED.isdisjoint(
            self._older_verdicts
        )

    @property
    def left_open(self) -> int:
        """How many effects were left behind."""
        counts = self._counts()
        return sum(counts.get(verdict, 0) for verdict in UNFINISHED)

    def report(self, ledger: Ledger, also_failed: Iterable[str] = ()) -> CompensationReport:
        """Make the report of the run from its unwinds and its ledger."""
        counts = self._counts()
        newest = self._unwinds[-1] if self._unwinds else None
        return CompensationReport(
            status=self._status(counts),
            trigger=newest.trigger if newest else None,
            cause=newest.cause if newest else None,
            entries=tuple(p.report(u.ordinal) for u in self._unwinds for p in u.plan),
            in_doubt=_in_doubt(ledger),
            unwinds=tuple(u.report() for u in self._unwinds),
            older_unwinds=self._older_count,
            also_failed=tuple(also_failed),
            counts=counts,
            omitted_in_doubt=ledger.omitted_in_doubt,
        )

    def _counts(self) -> dict[str, int]:
        counts = dict(self._older_verdicts)
        for unwind in self._unwinds:
            _count(unwind.plan, counts)
        return counts

    def _status(self, counts: Mapping[str, int]) -> Status:
        verdicts: list[str | None] = list(counts)
        verdicts += [None for u in self._unwinds for p in u.plan if p.verdict is None]
        return fold_status(verdicts, active=any(u.ended_at is None for u in self._unwinds))


def _count(plan: Iterable[Planned], counts: dict[str, int]) -> None:
    for each in plan:
        if each.verdict is not None:
            counts[each.verdict] = counts.get(each.verdict, 0) + 1


def _in_doubt(ledger: Ledger) -> tuple[InDoubtReport, ...]:
    doubts = [
        InDoubtReport(e.key, e.contract.action, e.doubt or "")
        for e in ledger
        if e.state is State.IN_DOUBT
    ]
    doubts += [
        InDoubtReport(c.key, c.name, c.doubt, "committer") for c in ledger.committers_in_doubt
    ]
    return tuple(doubts)
