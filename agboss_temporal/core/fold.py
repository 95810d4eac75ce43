"""Folding what a history says into the ledger of its run.

The same table and the same rules as in the workflow, driven by events instead of code. What a
record says was decided by the workflow, so it stands, even where an older record of the same run
said otherwise: contracts may change while a run is open. What no workflow could have done is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from agboss_temporal.core import hand_overs_seen, outcome, recovery, wire
from agboss_temporal.core.adoption import Adoption
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.children_seen import ChildrenSeen
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.core.executions import Executions
from agboss_temporal.core.facts import HAND_OVER, About, Call, Origin
from agboss_temporal.core.flights import Flight, Flights
from agboss_temporal.core.gaps import Gaps
from agboss_temporal.core.judging import Docket
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.recovery import Outcome, RecoveryPlan
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.rows import Rows
from agboss_temporal.core.run_ledger import RunEnd, RunLedger
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.sealing import Seal
from agboss_temporal.core.undos_seen import UndosSeen
from agboss_temporal.core.unwinds_seen import UnwindsSeen


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
        self._recovers: RecoveryPlan | None = None
        self._ordinal = 0
        self._tasks: list[int] = []
        self._updates: dict[str, UnitPath] = {}
        self._end: RunEnd | None = None
        self._also_failed: tuple[str, ...] = ()
        self._gaps = Gaps()
        self._ledger = Ledger()
        self._rows = Rows(self._ledger)
        self._docket = Docket()
        self._unwinds = UnwindsSeen(self._ledger)
        self._undos = UndosSeen(
            self._rows,
            self._ledger,
            self._unwinds,
            self._docket,
            self._gaps,
            recovers=origin.workflow_type == recovery.RECOVERY_TYPE,
        )
        self._adoption = Adoption(self._rows, self._ledger, self._unwinds)
        self._executions = Executions(self._rows, self._ledger, self._docket, origin.task_queue)
        self._flights = Flights()
        self._children = ChildrenSeen()

    # -- the run

    def adopt(self, carried: Sequence[Carried], parse: Callable[[bytes], Any]) -> None:
        """Take over what an earlier run handed on; arguments as in `Adoption.carried`."""
        self._adoption.carried(carried, self._table, parse)

    def adopt_plan(self, plan: RecoveryPlan, parse: Callable[[bytes], Any]) -> None:
        """Take over what another run has planned; arguments as in `Adoption.planned`."""
        self._recovers = plan
        self._adoption.planned(plan, parse)

    def unreadable(self, event_id: int, what: str, reason: str) -> None:
        """Something could not be read."""
        self._gaps.unreadable(event_id, what, reason)

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

    def recovered(self, event_id: int, outcomes: Mapping[str, Outcome]) -> None:
        """The run is about to complete: it is a recovery workflow, and has a result."""
        if self._recovers is not None:
            self._unwinds.resulted(event_id, self._recovers.unwind, outcomes)

    def closed(self, end: RunEnd, report: CompensationReport | None, *, uncommitted: bool) -> None:
        """The run was closed.

        Args:
            end: How.
            report: The report that its error carries.
            uncommitted: Whether it failed because committers never ran.
        """
        self._end = end
        self._unwinds.rest()
        if report is not None and not self._gaps.lacks(HAND_OVER):
            self._unwinds.complete(end.event_id, report, self._rows.entries())
            self._also_failed = report.also_failed
        if end.how == "completed" or uncommitted:
            self._ledger.finish()
        self._executions.left_behind(self._flights)

    # -- calls

    def scheduled(self, call: Call) -> None:
        """A call was scheduled."""
        record = call.record
        key = record.key if record is not None else f"{self._epoch}-e{call.event_id}"
        flight = Flight(call, key)
        self._flights.depart(flight)
        if record is None or record.unwind is None:
            self._ordinal += 1
        if record is not None and record.hands_over is not None:
            self._hand_over(flight, record)
        elif record is not None:
            self._recorded(flight, record)
        elif call.unreadable is not None:
            self._gaps.unreadable(call.event_id, "header", call.unreadable)
        else:
            self._judge(flight)
        if call.kind == "workflow":
            self._children.begin(call, flight.row.entry.key if flight.row is not None else None)

    def _recorded(self, flight: Flight, record: wire.CallRecord) -> None:
        """Take a call for what its record says."""
        flight.unit = record.unit
        self._ledger.told(record.ended)
        if record.update is not None:
            self._updates[record.update] = record.unit[:1]
        self._executions.by_record(flight, record, self._ordinal, self._unwinds.now)
        if record.undoes:
            flight.undo = self._undos.by_record(flight.call, record)

    def _hand_over(self, flight: Flight, record: wire.CallRecord) -> None:
        """Take a child for one that undoes a part of an unwind's plan."""
        call = flight.call
        handed = hand_overs_seen.check(call, record, self._origin.workflow_id)
        if handed is None:
            self._gaps.unreadable(call.event_id, HAND_OVER, str(call.handed))
        else:
            flight.handed = self._undos.by_child(call, record, handed)

    def _judge(self, flight: Flight) -> None:
        """Take a call without a record for what its name is declared to be."""
        self._gaps.unmarked()
        call, table = flight.call, self._table
        contract = table.get(call.kind, call.name) if table is not None else None
        if contract is not None and contract.is_action:
            self._executions.by_judgement(flight, contract, self._ordinal, self._unwinds.now)
        elif contract is None:
            self._gaps.unrecorded(call.event_id, call.name, call.kind)
        if table is None:
            return
        call.contract = contract
        if call.name in table.committers:
            flight.commits = call.name
        if call.kind == "activity" and call.name in table.undos:
            closed = self._docket.closed_by(call.name, call.plain_args)
            row = self._rows.get(closed.entry.key) if closed is not None else None
            if row is not None:
                flight.undo = self._undos.by_code(call, row)

    def local_action(self, event_id: int, name: str) -> None:
        """A local activity was executed; no record of ours can stand there."""
        self._ordinal += 1
        self._gaps.unrecorded(event_id, name, "local-activity")

    def started(self, about: About, attempt: int = 0, run_id: str | None = None) -> None:
        """A call was picked up, or a child has begun."""
        self._flights.start(about, attempt)
        self._children.started(about.of, run_id)

    def cancel_requested(self, about: About) -> None:
        """A call was asked to cancel; what becomes of it, a later event says."""
        self._flights.flying(about, "cancels")

    def completed(self, about: About, result: Any, plain: Any = None) -> None:
        """A call completed.

        Args:
            about: The event.
            result: Its result payload as the history has it.
            plain: The same without codec; given only where there is no record to go by.
        """
        flight = self._land(about, "completed")
        self._executions.completed(flight, result, plain)
        if flight.undo is not None:
            flight.undo.ended(about, flight.attempts, None)

    def failed(self, about: About, failure: outcome.Failure, end: str) -> None:
        """A call ended without a result.

        Args:
            about: The event.
            failure: What it ended with.
            end: How that is called for a child.
        """
        flight = self._land(about, end)
        if flight.handed is not None:
            told = recovery.no_answer(hand_overs_seen.raised_for(failure))
            flight.handed.answered(about, told)
        self._executions.failed(flight, failure)
        if flight.undo is not None:
            flight.undo.ended(about, flight.attempts, failure.type or failure.kind)

    def answered(self, about: About, found: Mapping[str, Outcome] | Outcome | str) -> None:
        """A child completed that was given a part of an unwind's plan.

        Args:
            about: The event.
            found: What became of each entry, by key, or of all of them; or why its answer cannot be
                read.
        """
        flight = self._land(about, "completed")
        if isinstance(found, str):
            self._gaps.unreadable(about.event_id, HAND_OVER, found)
        elif flight.handed is not None:
            flight.handed.answered(about, found)

    def _land(self, about: About, end: str) -> Flight:
        self._unwinds.rest()
        flight = self._flights.land(about, started=end in ("completed", "failed"))
        if flight.row is not None:
            flight.row.settled_event_id = about.event_id
            flight.row.settled_at = about.at
        self._children.ended(about.of, end, about.event_id)
        return flight

    # -- the result

    def result(self, last_event_id: int) -> RunLedger:
        """Return the ledger after the last event."""
        self._unwinds.rest()
        actions = {(r.entry.contract.kind, r.entry.contract.action) for r in self._rows}
        actions |= {(c.kind, c.action) for c in self._table or () if c.is_action}
        return RunLedger(
            workflow_id=self._origin.workflow_id,
            workflow_type=self._origin.workflow_type,
            run_id=self._epoch,
            task_queue=self._origin.task_queue,
            entries=tuple(row.result_of_fold() for row in self._rows),
            committers_in_doubt=tuple(self._ledger.committers_in_doubt),
            children=self._children.listed(),
            unrecorded=self._gaps.unrecorded_of(actions),
            unreadable=self._gaps.all_unreadable(),
            end=self._end,
            last_event_id=last_event_id,
            task_event_ids=tuple(self._tasks),
            report=self._unwinds.report(self._also_failed),
            origin=self._recovers.workflow_id if self._recovers is not None else None,
        )
