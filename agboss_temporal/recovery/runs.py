"""Fetching runs from the server, and reading their ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowHistory
from temporalio.converter import DataConverter, WorkflowSerializationContext
from temporalio.service import RPCError, RPCStatusCode

from agboss_temporal import history
from agboss_temporal.core.errors import HistoryError, RecoveryRefused
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.history.contracts import Declared
from agboss_temporal.recovery.executions import Execution, describe

AT_ONCE: Final = 10
"""How many requests to the server one recovery makes at once."""


@dataclass(frozen=True, slots=True)
class Read:
    """A run as its history shows it.

    Attributes:
        ledger: Its ledger.
        first_run_id: The first run of its chain, the same for all that were continued or reset.
        root: Id and run of the workflow that started all, if the run is a child.
        bases: The runs that it was made from by a reset.
    """

    ledger: RunLedger
    first_run_id: str
    root: tuple[str, str] | None = None
    bases: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: WorkflowHistory, ledger: RunLedger) -> Self:
        """Read what else a history says than its ledger."""
        started = found.events[0].workflow_execution_started_event_attributes
        root = None
        if started.parent_workflow_execution.run_id:
            of = started.root_workflow_execution
            of = of if of.run_id else started.parent_workflow_execution
            root = (of.workflow_id, of.run_id)
        return cls(ledger, started.first_execution_run_id or ledger.run_id, root, _bases(found))


class Runs:
    """The runs on one server.

    Args:
        client: A client of their namespace, with the data converter of their workers.
        contracts: By what calls without a record are judged.
    """

    def __init__(self, client: Client, contracts: Sequence[Declared] | None = None) -> None:
        self.client = client
        self._contracts = contracts
        self._gate = asyncio.Semaphore(AT_ONCE)

    def converter(self, workflow_id: str) -> DataConverter:
        """Return the data converter for what a workflow was given and has answered."""
        context = WorkflowSerializationContext(
            namespace=self.client.namespace, workflow_id=workflow_id
        )
        return self.client.data_converter.with_context(context)

    async def describe(self, workflow_id: str, run_id: str | None = None) -> Execution | None:
        """Describe a run, or the newest one; ``None`` if it is not there."""
        try:
            async with self._gate:
                return await describe(self.client, workflow_id, run_id)
        except RPCError as err:
            if err.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    async def history(self, workflow_id: str, run_id: str | None = None) -> WorkflowHistory | None:
        """Fetch the history of a run, or of the newest one; ``None`` if it is not there."""
        handle = self.client.get_workflow_handle(workflow_id, run_id=run_id or None)
        try:
            async with self._gate:
                return await handle.fetch_history()
        except RPCError as err:
            if err.status is RPCStatusCode.NOT_FOUND:
                return None
            raise

    async def read(self, workflow_id: str, run_id: str) -> Read:
        """Read a run.

        Raises:
            RecoveryRefused: It is not there, or it cannot be read without a gap.
        """
        found = await self.history(workflow_id, run_id)
        if found is None:
            raise not_found(workflow_id, run_id)
        try:
            ledger = await history.ledger(
                found, data_converter=self.converter(workflow_id), contracts=self._contracts
            )
        except HistoryError as err:
            raise RecoveryRefused(
                "unreadable", f"the history of {workflow_id}, run {run_id}, cannot be read: {err}"
            ) from err
        ledger = replace(ledger, workflow_id=workflow_id, run_id=run_id)
        _check_readable(ledger)
        return Read.of(found, ledger)


def not_found(workflow_id: str, run_id: str | None) -> RecoveryRefused:
    """Make the refusal of a run that is not there."""
    which = f"{workflow_id}, run {run_id}" if run_id else workflow_id
    return RecoveryRefused(
        "not-found",
        f"there is no {which} in this namespace, or its retention is over; what it did can then "
        "only be undone by hand",
    )


def _check_readable(ledger: RunLedger) -> None:
    """Refuse what has gaps: a seal or an undo may stand there, and nothing is guessed."""
    gaps = ledger.unreadable
    if not gaps:
        return
    told = "; ".join(f"event {each.event_id}: {each.what}: {each.reason}" for each in gaps[:5])
    more = f"; and {len(gaps) - 5} more" if len(gaps) > 5 else ""
    raise RecoveryRefused(
        "unreadable",
        f"the history of {ledger.workflow_id}, run {ledger.run_id}, has records that cannot be "
        f"read ({told}{more}); give the client the data converter and codec of its workers",
    )


def _bases(found: WorkflowHistory) -> tuple[str, ...]:
    reset = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
    failed = [e.workflow_task_failed_event_attributes for e in found.events]
    return tuple(dict.fromkeys(a.base_run_id for a in failed if a.cause == reset))
