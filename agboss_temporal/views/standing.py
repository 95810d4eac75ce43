"""Is anything left to worry about? One answer for the views and for the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agboss_temporal.core.entry import UNFINISHED, State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.run_ledger import RunEntry, RunLedger, Unreadable, UnrecordedCall
from agboss_temporal.views.looks import counted


@dataclass(frozen=True, slots=True)
class Standing:
    """What of a run needs a person, or a recovery.

    Attributes:
        open: What took effect in a run that is closed, and nothing undoes it.
        in_doubt: What may have taken effect; in a closed run also what was running, or was being
            undone, when it was closed.
        committers: Committers that may have taken effect.
        more_in_doubt: How many further committers in doubt are no longer listed.
        failed: What an unwind left behind.
        unrecorded: Actions without a record in a run that did not finish: nothing undoes them.
        unreadable: What could not be read: there may be more than is shown.
    """

    open: tuple[RunEntry, ...] = ()
    in_doubt: tuple[RunEntry, ...] = ()
    committers: tuple[CommitterInDoubt, ...] = ()
    more_in_doubt: int = 0
    failed: tuple[RunEntry, ...] = ()
    unrecorded: tuple[UnrecordedCall, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to worry about."""
        return not any(count for count, _ in self._counts())

    def __str__(self) -> str:
        found = [f"{count} {what}" for count, what in self._counts() if count]
        if self.unreadable:
            found[-1] = counted(len(self.unreadable), "unreadable record")
        return ", ".join(found) or "nothing"

    def _counts(self) -> Iterator[tuple[int, str]]:
        yield len(self.failed), "not undone"
        yield len(self.open), "open"
        yield len(self.in_doubt) + len(self.committers) + self.more_in_doubt, "in doubt"
        yield len(self.unrecorded), "unrecorded"
        yield len(self.unreadable), "unreadable"


def standing(ledger: RunLedger) -> Standing:
    """Tell what of a run needs attention.

    While a run goes on, or if it continued as new, what is open is in good hands.
    """
    how = None if ledger.end is None else ledger.end.how
    goes_on = how in (None, "continued_as_new")
    doubtful = {State.IN_DOUBT} if goes_on else {State.IN_DOUBT, State.RUNNING, State.UNDOING}
    return Standing(
        open=() if goes_on else tuple(ledger.open_entries()),
        in_doubt=tuple(e for e in ledger if e.state in doubtful),
        committers=ledger.committers_in_doubt,
        more_in_doubt=_unlisted(ledger),
        failed=tuple(e for e in ledger if e.state in UNFINISHED),
        unrecorded=() if goes_on or how == "completed" else ledger.unrecorded,
        unreadable=ledger.unreadable,
    )


def _unlisted(ledger: RunLedger) -> int:
    """Count the committers in doubt that only a number tells of.

    A report leaves out actions as well, but those stand in the ledger all the same.
    """
    report = ledger.report
    listed = sum(1 for doubt in report.in_doubt if doubt.role == "action")
    entries = sum(1 for entry in ledger if entry.state is State.IN_DOUBT)
    return max(report.omitted_in_doubt - max(entries - listed, 0), 0)
