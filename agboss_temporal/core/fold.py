"""Folding what a history says into the ledger of its run.

The same table and the same rules as in the workflow, driven by events instead of code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agboss_temporal.core import outcome, recovery, wire
from agboss_temporal.core.calls_seen import CallsSeen
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.facts import HAND_OVER as HAND_OVER
from agboss_temporal.core.facts import Call
from agboss_temporal.core.flights import Flight
from agboss_temporal.core.hand_overs_seen import raised_for
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.recovery import Outcome, RecoveryPlan
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.rows import Row
from agboss_temporal.core.run_ledger import (
    RunEnd,
    RunLedger,
    UnrecordedCall,
)
from agboss_temporal.core.sealing import Seal


class Fold(CallsSeen):
    """The fold; each method is one event."""

    # -- the run

    def adopt(self, carried: Sequence[Carried], parse: Callable[[bytes], Any]) -> None:
        """Take over what an earlier run handed on.

        Args:
            carried: The entries, oldest first.
            parse: Reads a serialized payload.
        """
        for number, each in enumerate(carried, -len(carried)):
            self._adopt(each, self.declared(each.contract), number, parse)

    def adopt_plan(self, plan: RecoveryPlan, parse: Callable[[bytes], Any]) -> None:
        """Take over what another run has planned: this is a recovery workflow.

        Args:
            plan: The plan; the contracts of its entries hold as they are.
            parse: Reads a serialized payload.
        """
        self.recovers = plan
        entries = [
            self._adopt(each, each.contract, number, parse)
            for number, each in enumerate(plan.entries, -len(plan.entries))
        ]
        unwind = Unwind(plan.trigger, plan.cause, ordinal=plan.unwind, origin=plan.workflow_id)
        unwind.plan = [Planned(entries[n], outcome=entries[n].outcome) for n in plan.order]
        self.unwinds.adopt(unwind)

    def _adopt(
        self, each: Carried, contract: Contract, number: int, parse: Callable[[bytes], Any]
    ) -> Entry:
        entry = Entry(key=each.key, contract=contract, ordinal=number)
        entry.task_queue = each.task_queue
        entry.priority = each.priority
        row = Row(entry, carried=True, args=tuple(map(parse, each.args)))
        self.enter(row, 1)
        if each.after is not None:
            entry.after = min(each.after, entry.after)
        if each.doubt is not None:
            self.ledger.doubt(entry, each.doubt)
        else:
            row.result = None if each.raw is None else parse(each.raw)
            self.ledger.complete(entry, None)
        return entry

    def recovered(self, event_id: int, outcomes: Mapping[str, Outcome]) -> None:
        """The run is about to complete: it is a recovery workflow, and has a result."""
        if self.recovers is not None:
            self.unwinds.resulted(event_id, self.recovers.unwind, outcomes)

    def task_completed(self, event_id: int, at: datetime | None) -> None:
        """A workflow task was completed; it began at a time, and saw all events before it."""
        self.tasks.append(event_id)
        self.unwinds.seen(at)

    def task_failed(self, event_id: int, new_run_id: str | None = None) -> None:
        """A workflow task failed or timed out; with a new run id, by a reset."""
        self.tasks.append(event_id)
        if new_run_id:
            self.epoch = new_run_id

    def unit_sealed(self, seal: Seal) -> None:
        """A unit that seals has ended."""
        seal.apply(self.ledger)

    def update_completed(self, update_id: str) -> None:
        """An update handler has returned: its caller was told that it is done (rule U4)."""
        unit = self.updates.pop(wire.update_digest(update_id), None)
        if unit is not None:
            told = self.ledger.open_told(unit)
            self.ledger.seal_all(e for e in told if e.contract.committer is None)

    def closed(self, end: RunEnd, report: CompensationReport | None, *, uncommitted: bool) -> None:
        """The run was closed.

        Args:
            end: How.
            report: The report that its error carries.
            uncommitted: Whether it failed because committers never ran.
        """
        self.end = end
        if report is not None and not any(each.what == HAND_OVER for each in self.unread):
            entries = {key: row.entry for key, row in self.rows.items()}
            self.unwinds.complete(end.event_id, report, entries)
            self.also_failed = report.also_failed
        if end.how == "completed" or uncommitted:
            self.ledger.finish()
        self.ledger.close()
        for flight in self.flights.values():
            if flight.commits is not None:
                self.doubt_committer(flight, "abandoned")

    # -- calls

    def scheduled(self, call: Call) -> None:
        """A call was scheduled."""
        flight = self.flights[call.event_id] = Flight(call)
        record = call.record
        if record is None or record.unwind is None:
            self.ordinal += 1
        if record is not None and record.hands_over is not None:
            self.hand_over(flight, record)
        elif record is not None:
            self.recorded(flight, record)
        elif call.unreadable is not None:
            self.unreadable(call.event_id, "header", call.unreadable)
        else:
            self.judge(flight)
        if call.kind == "workflow":
            self.begin_child(flight)

    def local_action(self, event_id: int, name: str) -> None:
        """A local activity was executed; no record of ours can stand there."""
        self.ordinal += 1
        self.unmarked.append(UnrecordedCall(event_id, name, "local-activity"))

    def started(self, event_id: int, of: int, attempt: int = 0, run_id: str | None = None) -> None:
        """A call was picked up, or a child has begun."""
        flight = self.flights.get(of)
        if flight is None:
            raise self.never(event_id, of, "starts")
        flight.attempts = attempt
        flight.started = True
        if flight.child is not None:
            child = self.children[flight.child]
            self.children[flight.child] = replace(child, run_id=run_id or None)

    def cancel_requested(self, event_id: int, of: int) -> None:
        """A call was asked to cancel; what becomes of it, a later event says."""
        if of not in self.flights:
            raise self.never(event_id, of, "cancels")

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
        flight = self.land(event_id, of, at, "completed")
        row = flight.row
        if row is not None:
            row.result = result
            if row.entry.state is State.RUNNING:
                self.ledger.complete(row.entry, None)
            if row.judged is not None:
                row.judged.result = plain
                self.docket.settled(row.judged)
        if flight.commits is not None:
            self.ledger.seal(flight.commits, flight.unit)
        if flight.undoes is not None:
            self.undo_ended(flight, event_id, at, None)

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
        flight = self.land(event_id, of, at, end)
        if flight.handed is not None:
            flight.handed.answered(event_id, at, recovery.no_answer(raised_for(failure)))
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
            self.docket.settled(row.judged)
        if row is not None and row.entry.state is State.RUNNING:
            if doubt is None:
                self.ledger.move(row.entry, Step.DISMISS)
                row.dismissed_as = "raised" if failure.kind == "application" else None
            else:
                self.ledger.doubt(row.entry, doubt)
        if flight.commits is not None and doubt is not None:
            self.doubt_committer(flight, doubt)
        if flight.undoes is not None:
            self.undo_ended(flight, event_id, at, failure.type or failure.kind)

    def answered(
        self,
        event_id: int,
        of: int,
        at: datetime | None,
        found: Mapping[str, Outcome] | Outcome | str,
    ) -> None:
        """A child completed that was given a part of an unwind's plan.

        Args:
            event_id: The event.
            of: The event that initiated the child.
            at: When.
            found: What became of each entry, by key, or of all of them; or why its answer cannot be
                read.
        """
        flight = self.land(event_id, of, at, "completed")
        if isinstance(found, str):
            self.unreadable(event_id, HAND_OVER, found)
        elif flight.handed is not None:
            flight.handed.answered(event_id, at, found)

    # -- the result

    def result(self, last_event_id: int) -> RunLedger:
        """Return the ledger after the last event."""
        names = {(r.entry.contract.kind, r.entry.contract.action) for r in self.order}
        names |= {(c.kind, c.action) for c in self.table or () if c.is_action}
        return RunLedger(
            workflow_id=self.origin.workflow_id,
            workflow_type=self.origin.workflow_type,
            run_id=self.epoch,
            task_queue=self.origin.task_queue,
            entries=tuple(row.result_of_fold() for row in self.order),
            committers_in_doubt=tuple(self.ledger.committers_in_doubt),
            children=tuple(self.children),
            unrecorded=tuple(
                call
                for call in self.unmarked
                if ("activity" if call.kind == "local-activity" else call.kind, call.action)
                in names
            ),
            unreadable=tuple(self.unread),
            end=self.end,
            last_event_id=last_event_id,
            task_event_ids=tuple(self.tasks),
            report=self.unwinds.report(self.also_failed),
            origin=self.recovers.workflow_id if self.recovers is not None else None,
        )
