"""Entries that a child workflow undoes for the run (rule E8), as the run's history shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agboss_temporal.core.entry import Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.facts import About, Call, HandOver
from agboss_temporal.core.outcome import Failure
from agboss_temporal.core.recovery import NOT_ANSWERED, RECOVERY_TYPE, Outcome
from agboss_temporal.core.rows import Row
from agboss_temporal.core.run_ledger import UndoCall
from agboss_temporal.core.unwinds_seen import Undoing, UnwindsSeen
from agboss_temporal.core.wire import CallRecord

_RAISED: Final = {
    "application": "ApplicationError",
    "timeout": "TimeoutError",
    "cancelled": "CancelledError",
}
"""What the workflow raises for a failure that says no type."""


class Handed:
    """The entries that one child has, in the order of its plan.

    Args:
        unwinds: The unwinds of the run.
        undoing: The call of the unwind that the child is.
        call: How the child was started.
        record: What its header says.
    """

    def __init__(
        self,
        unwinds: UnwindsSeen,
        undoing: Undoing,
        call: Call,
        record: CallRecord,
    ) -> None:
        self._unwinds = unwinds
        self._undoing = undoing
        self._call = call
        self._record = record
        self._rows: list[Row] = []
        self._calls: list[int] = []

    def take(self, row: Row) -> None:
        """Add an entry that can be undone."""
        call = self._call
        self._unwinds.undo(call.event_id, self._undoing, row.entry)
        self._rows.append(row)
        self._calls.append(len(row.undos))
        row.handed_to = call.call_id
        undo = UndoCall(
            event_id=call.event_id,
            activity=row.entry.contract.undo or "",
            unwind=self._record.unwind,
            scheduled_at=self._unwinds.now,
            by=call.call_id,
        )
        row.undos.append(undo)

    def answered(self, about: About, found: Mapping[str, Outcome] | Outcome) -> None:
        """Account for the end of the child.

        Args:
            about: The event that tells it.
            found: What it answers, by key; or what every entry gets, if it gave no answer.
        """
        outcomes = [
            found if isinstance(found, Outcome) else found.get(row.entry.key, NOT_ANSWERED)
            for row in self._rows
        ]
        for row, number, outcome in zip(self._rows, self._calls, outcomes, strict=True):
            if outcome.step not in (Step.SUCCEED, Step.FAIL):
                del row.undos[number]  # The child has not called it.
                continue
            known = not isinstance(found, Outcome) and outcome is not NOT_ANSWERED
            row.undos[number] = replace(
                row.undos[number],
                scheduled_at=outcome.started_at or row.undos[number].scheduled_at,
                settled_event_id=about.event_id,
                settled_at=outcome.ended_at or about.at,
                outcome=_OUTCOMES[outcome.step] if known else None,
                reason=outcome.reason,
            )
        self._unwinds.answered(self._undoing, outcomes)


_OUTCOMES: Final = {Step.SUCCEED: "completed", Step.FAIL: "failed"}


def check(call: Call, record: CallRecord, workflow_id: str) -> HandOver | None:
    """Return what a child takes over; ``None`` if that cannot be read.

    Raises:
        HistoryError: No workflow could have handed that over.
    """
    if call.kind != "workflow" or call.name != RECOVERY_TYPE:
        raise HistoryError(
            call.event_id, f"{call.name} takes over a part of an unwind and is no {RECOVERY_TYPE}"
        )
    handed = call.handed
    if isinstance(handed, str):
        return None
    if handed.unwind != record.unwind:
        raise HistoryError(
            call.event_id,
            f"its plan is of unwind {handed.unwind}, its header of unwind {record.unwind}",
        )
    if workflow_id and handed.workflow_id != workflow_id:
        raise HistoryError(call.event_id, "its plan is that of another workflow")
    return handed


def raised_for(failure: Failure) -> str:
    """Name the error that a workflow finds where a child has failed, as its reports do."""
    if failure.kind == "timeout":
        return _RAISED["timeout"]
    return failure.type or _RAISED.get(failure.kind, "ChildWorkflowError")
