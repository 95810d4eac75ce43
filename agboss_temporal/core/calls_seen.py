"""What a call in a history is: an action, a committer, an undo, by its record or by judgement.

What a record says was decided by the workflow, so it stands, even where an older record of the same
run said otherwise: contracts may change while a run is open. What no workflow could have done is an
error.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from agboss_temporal.core import hand_overs_seen
from agboss_temporal.core.contract import Contract, ContractTable
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.facts import HAND_OVER, Call, HandedEntry, Origin
from agboss_temporal.core.flights import Flight
from agboss_temporal.core.judging import Docket, Judged
from agboss_temporal.core.ledger import CommitterInDoubt, Ledger
from agboss_temporal.core.recovery import RECOVERY_TYPE, RecoveryPlan
from agboss_temporal.core.rows import Row
from agboss_temporal.core.run_ledger import (
    ChildRun,
    RunEnd,
    UndoCall,
    Unreadable,
    UnrecordedCall,
)
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.unwinds_seen import UnwindsSeen
from agboss_temporal.core.wire import CallRecord

UNKNOWN: Final = "unknown"
"""Stands for the name of an action that has no record, where only its undo has one."""


class CallsSeen:
    """The calls of one run, and the ledger that they make.

    Args:
        origin: Which run it is.
        table: By what calls without a record are judged; ``None`` to list them as unrecorded.
    """

    def __init__(self, origin: Origin, table: ContractTable | None = None) -> None:
        self.origin = origin
        self.table = table
        self.epoch = origin.run_id
        self.ledger = Ledger()
        self.unwinds = UnwindsSeen(self.ledger)
        self.rows: dict[str, Row] = {}
        self.order: list[Row] = []
        self._any_unmarked = False
        self.flights: dict[int, Flight] = {}
        self._landed: set[int] = set()
        self.children: list[ChildRun] = []
        self.docket = Docket()
        self.updates: dict[str, UnitPath] = {}
        self.unmarked: list[UnrecordedCall] = []
        self.unread: list[Unreadable] = []
        self.tasks: list[int] = []
        self.ordinal = 0
        self.end: RunEnd | None = None
        self.also_failed: tuple[str, ...] = ()
        self.recovers: RecoveryPlan | None = None

    def unreadable(self, event_id: int, what: str, reason: str) -> None:
        """Something could not be read."""
        self.unread.append(Unreadable(event_id, what, reason))

    # -- records

    def recorded(self, flight: Flight, record: CallRecord) -> None:
        """Take a call for what its record says."""
        call = flight.call
        flight.unit = record.unit
        self.ledger.told(record.ended)
        if record.update is not None:
            self.updates[record.update] = record.unit[:1]
        if record.action_key is not None:
            if call.contract is None or not call.contract.is_action:
                raise HistoryError(call.event_id, f"{call.name} is an action without an undo")
            flight.row = self._begin(flight, record.action_key, call.contract, record.unit)
            flight.row.may_settle_late = record.abandons
        if record.committer_key is not None:
            flight.commits = call.name
        if record.undoes:
            recovers = self.origin.workflow_type == RECOVERY_TYPE
            hand_overs_seen.check_origin(call, record, recovers=recovers)
            asked = HandedEntry(record.undoes, call.name, call.plain_args)
            self._undo(flight, self._undone_row(call, asked), record)

    def hand_over(self, flight: Flight, record: CallRecord) -> None:
        """Take a child for one that undoes a part of an unwind's plan."""
        call = flight.call
        handed = hand_overs_seen.check(call, record, self.origin.workflow_id)
        if handed is None:
            self.unreadable(call.event_id, HAND_OVER, str(call.handed))
            return
        kept = self._kept(record)
        undoing = self.unwinds.call(call.event_id, record, kept, rest=True)
        flight.handed = hand_overs_seen.Handed(self.unwinds, undoing, call, record)
        for each in handed.entries:
            row = self._undone_row(call, each)
            self._make_ready(row, call)
            flight.handed.take(row)

    def _kept(self, record: CallRecord) -> dict[str, Entry | None]:
        rows = {key: self.rows.get(key) for key in record.kept}
        return {key: None if row is None else row.entry for key, row in rows.items()}

    def _undone_row(self, call: Call, asked: HandedEntry) -> Row:
        return self.rows.get(asked.key) or self._missing(call, asked)

    def _begin(self, flight: Flight, key: str, contract: Contract, unit: UnitPath) -> Row:
        call = flight.call
        entry = Entry(key=key, contract=contract, ordinal=ordinal_of(key, self.ordinal), unit=unit)
        entry.task_queue = call.task_queue if call.kind == "activity" else self.origin.task_queue
        entry.priority = call.priority
        row = Row(entry, call, args=call.args, scheduled_at=self.unwinds.now)
        self.enter(row, call.event_id)
        return row

    def enter(self, row: Row, event_id: int) -> None:
        """Enter an execution that has been started."""
        key = row.entry.key
        if key in self.rows:
            raise HistoryError(event_id, f"there is an action with key {key} already")
        self.rows[key] = row
        self.order.append(row)
        self.ledger.begin(row.entry)

    def _undo(self, flight: Flight, row: Row, record: CallRecord | None) -> None:
        call = flight.call
        explicit = record is None or record.explicit
        self._make_ready(row, call)
        if explicit:
            self.ledger.move(row.entry, Step.UNDO)
        else:
            assert record is not None
            kept = self._kept(record)
            flight.undoing = self.unwinds.call(call.event_id, record, kept, rest=False)
            self.unwinds.undo(call.event_id, flight.undoing, row.entry)
        flight.undoes = row
        flight.undo_number = len(row.undos)
        row.undos.append(
            UndoCall(
                event_id=call.event_id,
                activity=call.name,
                activity_id=call.call_id,
                task_queue=call.task_queue,
                explicit=explicit,
                unwind=record.unwind if record is not None else None,
                scheduled_at=self.unwinds.now,
            )
        )

    def _make_ready(self, row: Row, call: Call) -> None:
        """See to it that an entry can be undone now, or raise if no workflow could have done it."""
        entry = row.entry
        if entry.state is State.RUNNING and row.may_settle_late:
            self.ledger.doubt(entry, "abandoned")
        elif entry.state is State.SEALED:
            self.ledger.take_back(entry)
        elif entry.state is State.NO_EFFECT and row.dismissed_as is not None:
            entry.doubt = row.dismissed_as
            self.ledger.take_back(entry)
        if entry.state not in (State.OPEN, State.IN_DOUBT):
            raise HistoryError(
                call.event_id, f"{call.name} undoes {entry.key}, which is {entry.state}"
            )

    def undo_ended(
        self, flight: Flight, event_id: int, at: datetime | None, reason: str | None
    ) -> None:
        """Account for an undo that has settled; with a reason if it failed."""
        row = flight.undoes
        assert row is not None
        row.undos[flight.undo_number] = replace(
            row.undos[flight.undo_number],
            settled_event_id=event_id,
            settled_at=at,
            attempts=flight.attempts,
            outcome="completed" if reason is None else "failed",
            reason=reason,
        )
        if flight.undoing is not None:
            self.unwinds.ended(flight.undoing, reason)
        elif row.entry.state is State.UNDOING:
            if reason is None:
                self.ledger.move(row.entry, Step.SUCCEED)
            else:
                self.ledger.reopen(row.entry)

    def _missing(self, call: Call, asked: HandedEntry) -> Row:
        """Account for the undo of an entry that nothing has shown."""
        key = asked.key
        judged = self.docket.undone_by(asked.undo or "", asked.given, ordinal_of(key, 0))
        if judged is not None:
            row = self.rows[judged.entry.key]
            self.rows[key] = self.rows.pop(row.entry.key)
            self.ledger.rename(row.entry, key)
            return row
        if not (self.unread or self._any_unmarked):
            raise HistoryError(call.event_id, f"{call.name} undoes {key}, which was never started")
        self.unreadable(call.event_id, "undo", f"the call of the action {key} has no record")
        row = Row(Entry(key, Contract(UNKNOWN, undo=asked.undo), 0), recorded=False)
        self.enter(row, call.event_id)
        self.ledger.complete(row.entry, None)
        return row

    # -- calls without a record

    def judge(self, flight: Flight) -> None:
        """Take a call without a record for what its name is declared to be."""
        self._any_unmarked = True
        call, table = flight.call, self.table
        contract = table.get(call.kind, call.name) if table is not None else None
        if contract is not None and contract.is_action:
            flight.row = self._begin(flight, self._key_of(call), contract, ())
            flight.row.recorded = False
            judged = Judged(flight.row.entry, self.ordinal, call.plain_args)
            flight.row.judged = judged
            self.docket.begin(judged)
        elif table is None or contract is None:
            self.unmarked.append(UnrecordedCall(call.event_id, call.name, call.kind))
        if table is None:
            return
        call.contract = contract
        if call.name in table.committers:
            flight.commits = call.name
        if call.kind == "activity" and call.name in table.undos:
            closed = self.docket.closed_by(call.name, call.plain_args)
            if closed is not None:
                self._undo(flight, self.rows[closed.entry.key], None)

    def declared(self, contract: Contract) -> Contract:
        """Return what the table declares for an action, else what its record says."""
        found = self.table.get(contract.kind, contract.action) if self.table else None
        return found or contract

    def _key_of(self, call: Call) -> str:
        """Make a key for a call without one; a reset makes others for what it executes again."""
        return f"{self.epoch}-e{call.event_id}"

    # -- settling

    def land(self, event_id: int, of: int, at: datetime | None, end: str) -> Flight:
        """Take a call out of flight that an event settles."""
        flight = self.flights.pop(of, None)
        if flight is None:
            raise self.never(event_id, of, "settles")
        self._landed.add(of)
        if flight.row is not None:
            flight.row.settled_event_id = event_id
            flight.row.settled_at = at
        if flight.child is not None:
            child = self.children[flight.child]
            self.children[flight.child] = replace(child, end=end, end_event_id=event_id)
        return flight

    def never(self, event_id: int, of: int, does: str) -> HistoryError:
        """Make the error of an event about a call that is not in flight."""
        why = "has settled already" if of in self._landed else "was never scheduled"
        return HistoryError(event_id, f"it {does} what {why} (event {of})")

    def doubt_committer(self, flight: Flight, doubt: str) -> None:
        """Account for a committer that may have taken effect."""
        call = flight.call
        key = call.record.key if call.record is not None else self._key_of(call)
        self.ledger.doubt_committer(CommitterInDoubt(key, call.name, doubt))

    def begin_child(self, flight: Flight) -> None:
        """List a child that has been started."""
        call = flight.call
        flight.child = len(self.children)
        self.children.append(
            ChildRun(
                event_id=call.event_id,
                workflow_type=call.name,
                workflow_id=call.call_id,
                namespace=call.namespace,
                compensated=flight.row is not None or call.parent_close_policy == "request_cancel",
                parent_close_policy=call.parent_close_policy,
                key=flight.row.entry.key if flight.row is not None else None,
                takes_over=call.record is not None and call.record.hands_over is not None,
            )
        )


def ordinal_of(key: str, otherwise: int) -> int:
    """Return the ordinal that ends a key."""
    tail = key.rpartition("-")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 10 else otherwise
