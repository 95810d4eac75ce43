"""The calls of actions and committers, from when they were scheduled until they settle."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from agboss_temporal.core import outcome
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.flights import Flight
from agboss_temporal.core.judging import Docket, Judged
from agboss_temporal.core.ledger import CommitterInDoubt, Ledger
from agboss_temporal.core.rows import Row, Rows, ordinal_of
from agboss_temporal.core.wire import CallRecord


class Executions:
    """Enters the executions of actions, and moves entries as these and committers settle.

    Args:
        rows: The entries.
        ledger: The ledger that they are in.
        docket: The actions without a record.
        task_queue: The run's own queue, on which undos of children run.
    """

    def __init__(self, rows: Rows, ledger: Ledger, docket: Docket, task_queue: str) -> None:
        self._rows = rows
        self._ledger = ledger
        self._docket = docket
        self._task_queue = task_queue

    def by_record(
        self, flight: Flight, record: CallRecord, ordinal: int, at: datetime | None
    ) -> None:
        """A call was scheduled that may be an action and a committer, as its record says.

        Args:
            flight: The call.
            record: What its header says.
            ordinal: Its place among the calls of the run, if its key does not tell.
            at: When it was scheduled.

        Raises:
            HistoryError: No workflow could have scheduled it.
        """
        call = flight.call
        if record.action_key is not None:
            if call.contract is None or not call.contract.is_action:
                raise HistoryError(call.event_id, f"{call.name} is an action without an undo")
            row = self._begin(flight, record.action_key, call.contract, ordinal, at)
            row.may_settle_late = record.abandons
        if record.committer_key is not None:
            flight.commits = call.name

    def by_judgement(
        self, flight: Flight, contract: Contract, ordinal: int, at: datetime | None
    ) -> None:
        """An action was scheduled that has no record; arguments as in `by_record`."""
        row = self._begin(flight, flight.key, contract, ordinal, at)
        row.recorded = False
        row.judged = Judged(row.entry, ordinal, flight.call.plain_args)
        self._docket.begin(row.judged)

    def completed(self, flight: Flight, result: Any, plain: Any) -> None:
        """A call completed.

        Args:
            flight: The call.
            result: Its result payload as the history has it.
            plain: The same without codec; given only where there is no record to go by.
        """
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

    def failed(self, flight: Flight, failure: outcome.Failure) -> None:
        """A call ended without a result."""
        call, row = flight.call, flight.row
        contract = row.entry.contract if row is not None else call.contract
        doubt = outcome.doubt(
            failure,
            contract.no_effect_errors if contract is not None else (),
            abandoned=call.record is not None and call.record.abandons,
            single_attempt=call.single_attempt,
        )
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

    def left_behind(self, flights: Iterable[Flight]) -> None:
        """The run was closed while calls were in the air."""
        self._ledger.close()
        for flight in flights:
            if flight.commits is not None:
                self._doubt_committer(flight, "abandoned")

    def _begin(
        self, flight: Flight, key: str, contract: Contract, ordinal: int, at: datetime | None
    ) -> Row:
        call = flight.call
        entry = Entry(key, contract, ordinal_of(key, ordinal), unit=flight.unit)
        entry.task_queue = call.task_queue if call.kind == "activity" else self._task_queue
        entry.priority = call.priority
        row = flight.row = Row(entry, call, args=call.args, scheduled_at=at)
        self._rows.enter(row, call.event_id)
        return row

    def _doubt_committer(self, flight: Flight, doubt: str) -> None:
        self._ledger.doubt_committer(CommitterInDoubt(flight.key, flight.call.name, doubt))
