"""The undos of a run: which entry each is for, whether it can be, and what became of it.

An undo is a call of the workflow's code, a call of an unwind, or a part of a child that was given
the rest of a plan (rule E8).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.facts import About, Call, HandedEntry, HandOver
from agboss_temporal.core.gaps import Gaps
from agboss_temporal.core.hand_overs_seen import Handed
from agboss_temporal.core.judging import Docket
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.rows import Row, Rows, ordinal_of
from agboss_temporal.core.run_ledger import UndoCall
from agboss_temporal.core.unwinds_seen import Undoing, UnwindsSeen
from agboss_temporal.core.wire import CallRecord

UNKNOWN: Final = "unknown"
"""Stands for the name of an action that has no record, where only its undo has one."""


class Undo:
    """One undo while it is in the air.

    Args:
        row: The entry that it undoes.
        ledger: The ledger that the entry is in.
        unwinds: The unwinds of the run.
        undoing: The call of an unwind that it is; ``None`` if the workflow's code called it.
    """

    def __init__(
        self, row: Row, ledger: Ledger, unwinds: UnwindsSeen, undoing: Undoing | None
    ) -> None:
        self._row = row
        self._ledger = ledger
        self._unwinds = unwinds
        self._undoing = undoing
        self._number = len(row.undos)

    def ended(self, about: About, attempts: int, reason: str | None) -> None:
        """It has settled; with a reason if it failed."""
        row, number = self._row, self._number
        row.undos[number] = replace(
            row.undos[number],
            settled_event_id=about.event_id,
            settled_at=about.at,
            attempts=attempts,
            outcome="completed" if reason is None else "failed",
            reason=reason,
        )
        if self._undoing is not None:
            self._unwinds.ended(self._undoing, reason)
        elif row.entry.state is State.UNDOING:
            if reason is None:
                self._ledger.move(row.entry, Step.SUCCEED)
            else:
                self._ledger.reopen(row.entry)


class UndosSeen:
    """Starts undos.

    Args:
        rows: The entries.
        ledger: The ledger that they are in.
        unwinds: The unwinds of the run.
        docket: The actions without a record.
        gaps: What the history lacks.
        recovers: Whether the run is a recovery workflow, which undoes for another one.
    """

    def __init__(
        self,
        rows: Rows,
        ledger: Ledger,
        unwinds: UnwindsSeen,
        docket: Docket,
        gaps: Gaps,
        *,
        recovers: bool,
    ) -> None:
        self._recovers = recovers
        self._rows = rows
        self._ledger = ledger
        self._unwinds = unwinds
        self._docket = docket
        self._gaps = gaps

    def by_record(self, call: Call, record: CallRecord) -> Undo:
        """An undo was scheduled whose record says what it undoes.

        Raises:
            HistoryError: No workflow could have scheduled it.
        """
        if call.kind != "activity":
            raise HistoryError(call.event_id, f"{call.name} is an undo and no activity")
        if (record.origin is not None) != self._recovers:
            whose = "this" if record.origin is None else "another"
            raise HistoryError(
                call.event_id,
                f"{call.name} is an undo for {whose} workflow, and this is "
                f"{'a' if self._recovers else 'no'} recovery workflow",
            )
        row = self._row_for(call, HandedEntry(record.undoes or "", call.name, call.plain_args))
        if record.explicit:
            return self.by_code(call, row, record.unwind)
        self._make_ready(row, call)
        undoing = self._unwinds.call(call.event_id, record, self._kept(record), rest=False)
        self._unwinds.undo(call.event_id, undoing, row.entry)
        return self._started(call, row, undoing, record.unwind)

    def by_code(self, call: Call, row: Row, unwind: int | None = None) -> Undo:
        """The workflow's code called the undo of an entry."""
        self._make_ready(row, call)
        self._ledger.move(row.entry, Step.UNDO)
        return self._started(call, row, None, unwind)

    def by_child(self, call: Call, record: CallRecord, handed: HandOver) -> Handed:
        """A child was given a part of a plan.

        Raises:
            HistoryError: No workflow could have handed that over.
        """
        undoing = self._unwinds.call(call.event_id, record, self._kept(record), rest=True)
        found = Handed(self._unwinds, undoing, call, record)
        for each in handed.entries:
            row = self._row_for(call, each)
            self._make_ready(row, call)
            found.take(row)
        return found

    def _started(self, call: Call, row: Row, undoing: Undoing | None, unwind: int | None) -> Undo:
        undo = Undo(row, self._ledger, self._unwinds, undoing)
        row.undos.append(
            UndoCall(
                event_id=call.event_id,
                activity=call.name,
                activity_id=call.call_id,
                task_queue=call.task_queue,
                explicit=undoing is None,
                unwind=unwind,
                scheduled_at=self._unwinds.now,
            )
        )
        return undo

    def _kept(self, record: CallRecord) -> dict[str, Entry | None]:
        rows = {key: self._rows.get(key) for key in record.kept}
        return {key: None if row is None else row.entry for key, row in rows.items()}

    def _make_ready(self, row: Row, call: Call) -> None:
        """See to it that an entry can be undone now, or raise if no workflow could have done it."""
        entry = row.entry
        if entry.state is State.RUNNING and row.may_settle_late:
            self._ledger.doubt(entry, "abandoned")
        elif entry.state is State.SEALED:
            self._ledger.take_back(entry)
        elif entry.state is State.NO_EFFECT and row.dismissed_as is not None:
            entry.doubt = row.dismissed_as
            self._ledger.take_back(entry)
        if entry.state not in (State.OPEN, State.IN_DOUBT):
            raise HistoryError(
                call.event_id, f"{call.name} undoes {entry.key}, which is {entry.state}"
            )

    def _row_for(self, call: Call, asked: HandedEntry) -> Row:
        """Find the entry that is to be undone, also one that nothing has shown."""
        key = asked.key
        row = self._rows.get(key)
        if row is not None:
            return row
        judged = self._docket.undone_by(asked.undo or "", asked.given, ordinal_of(key, 0))
        row = self._rows.get(judged.entry.key) if judged is not None else None
        if row is not None:
            self._rows.rename(row, key)
            return row
        if not self._gaps.may_hide_actions:
            raise HistoryError(call.event_id, f"{call.name} undoes {key}, which was never started")
        reason = f"the call of the action {key} has no record"
        self._gaps.unreadable(call.event_id, "undo", reason)
        row = Row(Entry(key, Contract(UNKNOWN, undo=asked.undo), 0), recorded=False)
        self._rows.enter(row, call.event_id)
        self._ledger.complete(row.entry, None)
        return row
