"""Fetching a run and reading its ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from agboss_temporal import history
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.errors import RecoveryRefused
from agboss_temporal.core.run_ledger import MAY_HAVE_EFFECT, ChildRun, RunLedger, Unreadable
from agboss_temporal.recovery.attempts import recovered
from agboss_temporal.recovery.executions import describe
from agboss_temporal.recovery.runs import Read, Runs

MOST_CHILDREN: Final = 100
"""How many children of a closed run are asked how they ended."""

_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True)
class Target:
    """A run to look at.

    Attributes:
        client: A client of its namespace.
        workflow_id: Id of its workflow.
        run_id: Its own id; ``None`` for the newest run.
        contracts: By which calls without a record are judged.
    """

    client: Client
    workflow_id: str
    run_id: str | None = None
    contracts: Sequence[Contract] | None = None


async def look(target: Target, known: tuple[str, int] = ("", 0)) -> RunLedger | None:
    """Read the ledger of a run as it is now.

    Args:
        target: The run.
        known: Run id and last event of what was seen before.

    Returns:
        The ledger, or ``None`` if nothing has happened since.
    """
    client = target.client
    execution = await describe(client, target.workflow_id, target.run_id)
    if known == (execution.run_id, execution.history_length):
        return None
    handle = client.get_workflow_handle(target.workflow_id, run_id=execution.run_id)
    found = await handle.fetch_history()
    ledger = await history.ledger(
        found, data_converter=client.data_converter, contracts=target.contracts
    )
    # A run that came from a reset has the first event of the run that was reset.
    ledger = replace(ledger, run_id=execution.run_id)
    if ledger.end is None:
        return ledger
    ledger = replace(ledger, children=await _ends_of(client, ledger))
    return await _recovered(client, Read.of(found, ledger))


async def _recovered(client: Client, read: Read) -> RunLedger:
    """Add what recoveries have done for a closed run, if it has left them anything."""
    ledger = read.ledger
    if not any(entry.state in MAY_HAVE_EFFECT for entry in ledger):
        return ledger
    try:
        return await recovered(Runs(client), read)
    except RecoveryRefused as err:
        gap = Unreadable(ledger.last_event_id, "recovery", str(err))
        return replace(ledger, unreadable=(*ledger.unreadable, gap))


async def _ends_of(client: Client, ledger: RunLedger) -> tuple[ChildRun, ...]:
    """Ask the children that outlived a closed run how they are."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def asked(child: ChildRun) -> ChildRun:
        elsewhere = child.namespace not in ("", client.namespace)
        if child.end is not None or child.run_id is None or elsewhere:
            return child
        try:
            async with gate:
                execution = await describe(client, child.workflow_id, child.run_id)
        except RPCError:
            return child  # It is no longer there, or is not ours to see: nobody knows.
        return replace(child, end=execution.how or "running")

    first = await asyncio.gather(*map(asked, ledger.children[:MOST_CHILDREN]))
    return (*first, *ledger.children[MOST_CHILDREN:])
