"""The plan of an unwind while it goes on, and the report that is made from all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agboss_temporal.core.ledger import CommitterInDoubt, Entry, State
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


@dataclass(slots=True)
class Unwind:
    """One unwind: what started it, and its plan.

    ``origin`` is the id of the workflow whose history holds the entries, if that is another one.
    """

    ordinal: int
    trigger: str
    cause: str | None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    plan: list[Planned] = dataclasses.field(default_factory=list)
    origin: str | None = None

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


def build_report(
    unwinds: Sequence[Unwind],
    entries: Iterable[Entry],
    committers: Iterable[CommitterInDoubt] = (),
    also_failed: Iterable[str] = (),
) -> CompensationReport:
    """Make the report of a run from its unwinds and its ledger."""
    planned = [p for unwind in unwinds for p in unwind.plan]
    counts: dict[str, int] = {}
    for each in planned:
        if each.verdict is not None:
            counts[each.verdict] = counts.get(each.verdict, 0) + 1
    kept = unwinds[-MAX_UNWINDS:]
    newest = unwinds[-1] if unwinds else None
    doubts = [
        InDoubtReport(e.key, e.contract.action, e.doubt or "")
        for e in entries
        if e.state is State.IN_DOUBT
    ]
    doubts += [InDoubtReport(c.key, c.name, c.doubt, "committer") for c in committers]
    return CompensationReport(
        status=fold_status(
            (p.verdict for p in planned), active=newest is not None and newest.ended_at is None
        ),
        trigger=newest.trigger if newest else None,
        cause=newest.cause if newest else None,
        entries=tuple(p.report(u.ordinal) for u in kept for p in u.plan),
        in_doubt=tuple(doubts),
        unwinds=tuple(u.report() for u in kept),
        older_unwinds=len(unwinds) - len(kept),
        also_failed=tuple(also_failed),
        counts=counts,
    )
