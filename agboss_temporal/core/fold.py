"""Folding what a history says into the ledger of its run.

The same table and the same rules as in the workflow, driven by events instead of code. What a
record says was decided by the workflow, so it stands, even where an older record of the same run
said otherwise: contracts may change while a run is open. What no workflow could have done is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from agboss_temporal.core import outcome, wire
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.contract import Contract, ContractTable
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.facts import Call, Origin
from agboss_temporal.core.judging import Docket, Judged
from agboss_temporal.core.ledger import CommitterInDoubt, Ledger
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.run_ledger import (
    ChildRun,
    RunEnd,
    RunEntry,
    RunLedger,
    UndoCall,
    Unreadable,
    UnrecordedCall,
)
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.sealing import Seal
from agboss_temporal.core.unwinds_seen import Undoing, UnwindsSeen
from agboss_temporal.core.wire import CallRecord

UNKNOWN: Final = "unknown"
"""Stands for the name of an action that has no record, where only its undo has one."""


@dataclass(slots=True, eq=False)
class Row:
    """An entry and what the history says beside it."""

    entry: Entry
    call: Call | None = None
    result: Any = None
    args: Sequence[Any] = ()
    settled_event_id: int | None = None
    scheduled_at: datetime | None = None
    settled_at: datetime | None = None
    carried: bool = False
    recorded: bool = True
    may_settle_late: bool = False
    dismissed_as: str | None = None
    judged: Judged | None = None
    undos: list[UndoCall] = field(default_factory=list)

    def result_of_fold(self) -> RunEntry:
        """Describe it."""
        entry, call = self.entry, self.call
        return RunEntry(
            key=entry.key,
            contract=entry.contract,
            ordinal=entry.ordinal,
            unit=entry.unit,
            state=entry.state,
            sequence=entry.sequence,
            after=entry.after,
            doubt=entry.doubt,
            result=self.result,
            args=tuple(self.args),
            carried=self.carried,
            recorded=self.recorded,
            call_id=call.call_id if call else "",
            event_id=call.event_id if call else None,
            settled_event_id=self.settled_event_id,
            scheduled_at=self.scheduled_at,
            settled_at=self.settled_at,
            task_queue=entry.task_queue,
            priority=entry.priority,
            undos=tuple(self.undos),
        )


@dataclass(slots=True, eq=False)
class _Flight:
    """A call that has not settled."""

    call: Call
    row: Row | None = None
    commits: str | None = None
    unit: UnitPath = ()
    undoes: Row | None = None
    undo_number: int = 0
    undoing: Undoing | None = None
    attempts: int = 0
    child: int | None = None
    started: bool = False


class Fold:
    """The fold; each method is one event.

    Args:
        origin: Which run it is.
        table: By what calls without a record are judged; ``None`` to list them as unrecorded.
    """

    def __init__(self, origin: Origin, table: ContractTable | None = None) -> None:
        self._origin = origin
        self._table = table
        self._epoch = origin.run_id
        self._ledger = Ledger()
        self._unwinds = UnwindsSeen(self._ledger)
        self._rows: dict[str, Row] = {}
        self._order: list[Row] = []
        self._any_unmarked = False
        self._flights: dict[int, _Flight] = {}
        self._landed: set[int] = set()
        self._children: list[ChildRun] = []
        self._docket = Docket()
        self._updates: dict[str, UnitPath] = {}
        self._unmarked: list[UnrecordedCall] = []
        self._unreadable: list[Unreadable] = []
        self._tasks: list[int] = []
        self._ordinal = 0
        self._end: RunEnd | None = None
        self._also_failed: tuple[str, ...] = ()

    # -- the run

    def adopt(self, carried: Sequence[Carried], parse: Callable[[bytes], Any]) -> None:
        """Take over what an earlier run handed on.

        Args:
            carried: The entries, oldest first.
            parse: Reads a serialized payload.
        """
        for number, each in enumerate(carried, -len(carried)):
            contract = self._declared(each.contract)
            entry = Entry(key=each.key, contract=contract, ordinal=number)
            entry.task_queue = each.task_queue
            entry.priority = each.priority
            row = Row(entry, carried=True, args=tuple(map(parse, each.args)))
            self._enter(row, 1)
            if each.doubt is not None:
                self._ledger.doubt(entry, each.doubt)
            else:
                row.result = None if each.raw is None else parse(each.raw)
                self._ledger.complete(entry, None)

    def task_completed(self, event_id: int, at: datetime | None) -> None:
        """A workflow task was completed; it began at a time, and saw all events before it."""
        self._tasks.append(event_id)
        self._unwinds.seen(at)

    def task_failed(self, event_id: int, new_run_id: str | None = None) -> None:
        """A workflow task failed or timed out; with a new run id, by a reset."""
        self._tasks.append(event_id)
        if new_run_id:
            self._epoch = new_run_id

    def unit_sealed(self, seal: Seal) -> None:
        """A unit that seals has ended."""
        seal.apply(self._ledger)

    def update_completed(self, update_id: str) -> None:
        """An update handler has returned: its caller was told that it is done (rule U4)."""
        unit = self._updates.pop(wire.update_digest(update_id), None)
        if unit is not None:
            told = self._ledger.open_told(unit)
            self._ledger.seal_all(e for e in told if e.contract.committer is None)

    def unreadable(self, event_id: int, what: str, reason: str) -> None:
        """Something could not be read."""
        self._unreadable.append(Unreadable(event_id, what, reason))

    def closed(self, end: RunEnd, report: CompensationReport | None, *, uncommitted: bool) -> None:
        """The run was closed.

        Args:
            end: How.
            report: The report that its error carries.
            uncommitted: Whether it failed because committers never ran.
        """
        self._end = end
        if report is not None:
            entries = {key: row.entry for key, row in self._rows.items()}
            self._unwinds.complete(end.event_id, report, entries)
            self._also_failed = report.also_failed
        if end.how == "completed" or uncommitted:
            self._ledger.finish()
        self._ledger.close()
        for flight in self._flights.values():
            if flight.commits is not None:
                self._doubt_committer(flight, "abandoned")

    # -- calls

    def scheduled(self, call: Call) -> None:
        """A call was scheduled."""
        flight = self._flights[call.event_id] = _Flight(call)
        record = call.record
        if record is None or record.unwind is None:
            self._ordinal += 1
        if record is not None:
            self._recorded(flight, record)
        elif call.unreadable is not None:
            self.unreadable(call.event_id, "header", call.unreadable)
        else:
            self._judge(flight)
        if call.kind == "workflow":
            self._begin_child(flight)

    def local_action(self, event_id: int, name: str) -> None:
        """A local activity was executed; no record of ours can stand there."""
        self._ordinal += 1
        self._unmarked.append(UnrecordedCall(event_id, name, "local-activity"))

    def started(self, event_id: int, of: int, attempt: int = 0, run_id: str | None = None) -> None:
        """A call was picked up, or a child has begun."""
        flight = self._flights.get(of)
        if flight is None:
            raise self._never(event_id, of, "starts")
        flight.attempts = attempt
        flight.started = True
        if flight.child is not None:
            child = self._children[flight.child]
            self._children[flight.child] = replace(child, run_id=run_id or None)

    def cancel_requested(self, event_id: int, of: int) -> None:
        """A call was asked to cancel; what becomes of it, a later event says."""
        if of not in self._flights:
            raise self._never(event_id, of, "cancels")

    def completed(
        self, event_id: int, of: int, at: datetime | None, result: Any, plain: Any = None
    ) -> None:
        """A call completed.

        Args:
            event_id: The event.
            of: The event that scheduled the call.
            at: When.
            result: Its result payload as the history has it.
            plain: The same without codec; given only where there is no record to go by.
        """
        flight = self._land(event_id, of, at, "completed")
        row = flight.row
        if row is not None:
            row.result = result
            if row.entry.state is State.RUNNING:
                self._ledger.complete(row.entry, None)
            if row.judged is not None:
                row.judged.result = plain
                self._docket.settled(row.judged)
        if flight.commits is not None:
            self._ledger.seal(flight.commits, flight.unit)
        if flight.undoes is not None:
            self._undo_ended(flight, event_id, at, None)

    def failed(
        self, event_id: int, of: int, at: datetime | None, failure: outcome.Failure, end: str
    ) -> None:
        """A call ended without a result.

        Args:
            event_id: The event.
            of: The event that scheduled the call.
            at: When.
            failure: What it ended with.
            end: How that is called for a child.
        """
        flight = self._land(event_id, of, at, end)
        call = flight.call
        contract = flight.row.entry.contract if flight.row is not None else call.contract
        doubt = outcome.doubt(
            failure,
            contract.no_effect_errors if contract is not None else (),
            abandoned=call.record is not None and call.record.abandons,
            single_attempt=call.single_attempt,
        )
        row = flight.row
        if row is not None and row.judged is not None:
            self._docket.settled(row.judged)
        if row is not None and row.entry.state is State.RUNNING:
            if doubt is None:
                self._ledger.move(row.entry, Step.DISMISS)
                row.dismissed_as = "raised" if failure.kind == "application" else None
            else:
                self._ledger.doubt(row.entry, doubt)
        if flight.commits is not None and doubt is not None:
            self._doubt_committer(flight, doubt)
        if flight.undoes is not None:
            self._undo_ended(flight, event_id, at, failure.type or failure.kind)

    # -- the result

    def result(self, last_event_id: int) -> RunLedger:
        """Return the ledger after the last event."""
        names = {(r.entry.contract.kind, r.entry.contract.action) for r in self._order}
        names |= {(c.kind, c.action) for c in self._table or () if c.is_action}
        return RunLedger(
            workflow_id=self._origin.workflow_id,
            workflow_type=self._origin.workflow_type,
            run_id=self._epoch,
            task_queue=self._origin.task_queue,
            entries=tuple(row.result_of_fold() for row in self._order),
            committers_in_doubt=tuple(self._ledger.committers_in_doubt),
            children=tuple(self._children),
            unrecorded=tuple(
                call
                for call in self._unmarked
                if ("activity" if call.kind == "local-activity" else call.kind, call.action)
                in names
            ),
            unreadable=tuple(self._unreadable),
            end=self._end,
            last_event_id=last_event_id,
            task_event_ids=tuple(self._tasks),
            report=self._unwinds.report(self._also_failed),
        )

    # -- records

    def _recorded(self, flight: _Flight, record: CallRecord) -> None:
        call = flight.call
        flight.unit = record.unit
        self._ledger.told(record.ended)
        if record.update is not None:
            self._updates[record.update] = record.unit[:1]
        if record.action_key is not None:
            if call.contract is None or not call.contract.is_action:
                raise HistoryError(call.event_id, f"{call.name} is an action without an undo")
            flight.row = self._begin(flight, record.action_key, call.contract, record.unit)
            flight.row.may_settle_late = record.abandons
        if record.committer_key is not None:
            flight.commits = call.name
        if record.undoes:
            row = self._rows.get(record.undoes) or self._missing(call, record)
            self._undo(flight, row, record)

    def _begin(self, flight: _Flight, key: str, contract: Contract, unit: UnitPath) -> Row:
        call = flight.call
        entry = Entry(key=key, contract=contract, ordinal=_ordinal(key, self._ordinal), unit=unit)
        entry.task_queue = call.task_queue if call.kind == "activity" else self._origin.task_queue
        entry.priority = call.priority
        row = Row(entry, call, args=call.args, scheduled_at=self._unwinds.now)
        self._enter(row, call.event_id)
        return row

    def _enter(self, row: Row, event_id: int) -> None:
        key = row.entry.key
        if key in self._rows:
            raise HistoryError(event_id, f"there is an action with key {key} already")
        self._rows[key] = row
        self._order.append(row)
        self._ledger.begin(row.entry)

    def _undo(self, flight: _Flight, row: Row, record: CallRecord | None) -> None:
        call = flight.call
        explicit = record is None or record.explicit
        self._make_ready(row, call)
        if explicit:
            self._ledger.move(row.entry, Step.UNDO)
        else:
            assert record is not None
            flight.undoing = self._unwinds.undo(
                call.event_id, record, row.entry, {k: self._rows.get(k) for k in record.kept}
            )
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
                scheduled_at=self._unwinds.now,
            )
        )

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

    def _undo_ended(
        self, flight: _Flight, event_id: int, at: datetime | None, reason: str | None
    ) -> None:
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
            self._unwinds.ended(flight.undoing, reason)
        elif row.entry.state is State.UNDOING:
            if reason is None:
                self._ledger.move(row.entry, Step.SUCCEED)
            else:
                self._ledger.reopen(row.entry)

    def _missing(self, call: Call, record: CallRecord) -> Row:
        """Account for the undo of an entry that nothing has shown."""
        key = record.undoes or ""
        judged = self._docket.undone_by(call.name, call.plain_args, _ordinal(key, 0))
        if judged is not None:
            row = self._rows[judged.entry.key]
            self._rows[key] = self._rows.pop(row.entry.key)
            self._ledger.rename(row.entry, key)
            return row
        if not (self._unreadable or self._any_unmarked):
            raise HistoryError(call.event_id, f"{call.name} undoes {key}, which was never started")
        self.unreadable(call.event_id, "undo", f"the call of the action {key} has no record")
        row = Row(Entry(key, Contract(UNKNOWN, undo=call.name), 0), recorded=False)
        self._enter(row, call.event_id)
        self._ledger.complete(row.entry, None)
        return row

    # -- calls without a record

    def _judge(self, flight: _Flight) -> None:
        """Take a call without a record for what its name is declared to be."""
        self._any_unmarked = True
        call, table = flight.call, self._table
        contract = table.get(call.kind, call.name) if table is not None else None
        if contract is not None and contract.is_action:
            flight.row = self._begin(flight, self._key_of(call), contract, ())
            flight.row.recorded = False
            judged = Judged(flight.row.entry, self._ordinal, call.plain_args)
            flight.row.judged = judged
            self._docket.begin(judged)
        elif table is None or contract is None:
            self._unmarked.append(UnrecordedCall(call.event_id, call.name, call.kind))
        if table is None:
            return
        call.contract = contract
        if call.name in table.committers:
            flight.commits = call.name
        if call.kind == "activity" and call.name in table.undos:
            closed = self._docket.closed_by(call.name, call.plain_args)
            if closed is not None:
                self._undo(flight, self._rows[closed.entry.key], None)

    def _declared(self, contract: Contract) -> Contract:
        found = self._table.get(contract.kind, contract.action) if self._table else None
        return found or contract

    def _key_of(self, call: Call) -> str:
        """Make a key for a call without one; a reset makes others for what it executes again."""
        return f"{self._epoch}-e{call.event_id}"

    # -- settling

    def _land(self, event_id: int, of: int, at: datetime | None, end: str) -> _Flight:
        flight = self._flights.pop(of, None)
        if flight is None:
            raise self._never(event_id, of, "settles")
        self._landed.add(of)
        if flight.row is not None:
            flight.row.settled_event_id = event_id
            flight.row.settled_at = at
        if flight.child is not None:
            child = self._children[flight.child]
            self._children[flight.child] = replace(child, end=end, end_event_id=event_id)
        return flight

    def _never(self, event_id: int, of: int, does: str) -> HistoryError:
        why = "has settled already" if of in self._landed else "was never scheduled"
        return HistoryError(event_id, f"it {does} what {why} (event {of})")

    def _doubt_committer(self, flight: _Flight, doubt: str) -> None:
        call = flight.call
        key = call.record.key if call.record is not None else self._key_of(call)
        self._ledger.doubt_committer(CommitterInDoubt(key, call.name, doubt))

    def _begin_child(self, flight: _Flight) -> None:
        call = flight.call
        flight.child = len(self._children)
        self._children.append(
            ChildRun(
                event_id=call.event_id,
                workflow_type=call.name,
                workflow_id=call.call_id,
                namespace=call.namespace,
                compensated=flight.row is not None or call.parent_close_policy == "request_cancel",
                parent_close_policy=call.parent_close_policy,
                key=flight.row.entry.key if flight.row is not None else None,
            )
        )


def _ordinal(key: str, otherwise: int) -> int:
    """Return the ordinal that ends a key."""
    tail = key.rpartition("-")[2]
    return int(tail) if tail.isdecimal() and len(tail) < 10 else otherwise
