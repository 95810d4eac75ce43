"""Resets: what lives on in the run that one makes, and to where a run may be reset."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.client import Client

from agboss_temporal.core.errors import RecoveryRefused
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.history.contracts import Declared
from agboss_temporal.recovery.attempts import recovered
from agboss_temporal.recovery.runs import Read, Runs, not_found


async def heirs(runs: Runs, read: Read) -> list[RunLedger]:
    """Read the runs that a reset has made from this one, or from one that it was made from.

    A server tells for each run only the last one that was made from it.
    """
    workflow_id, own = read.ledger.workflow_id, read.ledger.run_id
    found: dict[str, None] = {}
    for run_id in (own, *read.bases):
        description = await runs.describe(workflow_id, run_id)
        if description is not None:
            found[description.reset_run_id] = None
    ids = [run_id for run_id in found if run_id not in ("", own)]
    return [(await runs.read(workflow_id, run_id)).ledger for run_id in ids]


async def check_reset(
    client: Client,
    workflow_id: str,
    event_id: int,
    run_id: str | None = None,
    *,
    contracts: Iterable[Declared] | None = None,
) -> None:
    """Make sure that a reset does not build on what was undone.

    A run that is reset keeps what happened before the event. If an action among that was undone
    later, by the run or by a recovery, the new run takes it for done.

    Args:
        client: A client, with the data converter of the workers.
        workflow_id: The workflow.
        event_id: The end of a workflow task, as ``temporal workflow reset --event-id`` takes it.
        run_id: The run that is to be reset; by default the newest.
        contracts: As in `history.ledger`.

    Raises:
        RecoveryRefused: ``unsafe-reset``: the new run would build on something that is undone, or
            being undone; the message names it, and the last event that is safe. Also if the run
            is not there or cannot be read, or the event is not the end of a workflow task.
    """
    runs = Runs(client, None if contracts is None else tuple(contracts))
    description = await runs.describe(workflow_id, run_id)
    if description is None:
        raise not_found(workflow_id, run_id)
    read = await runs.read(workflow_id, description.run_id)
    ledger = read.ledger
    if event_id not in ledger.task_event_ids:
        raise RecoveryRefused(
            "no-reset-point",
            f"event {event_id} of {workflow_id} is not the end of a workflow task; a run can be "
            f"reset to {_listed(ledger.task_event_ids)}",
        )
    ledger = await recovered(runs, read)
    built_on = ledger.built_on(event_id)
    if not built_on:
        return
    safe = ledger.last_safe_reset
    names = ", ".join(f"{e.contract.action} {e.key}" for e in built_on[:5])
    raise RecoveryRefused(
        "unsafe-reset",
        f"a run made from {workflow_id}, run {ledger.run_id}, by a reset to event {event_id} would "
        f"build on what is undone: {names}; "
        + ("no event is safe, start a new run" if safe is None else f"the last safe one is {safe}"),
    )


def _listed(events: Iterable[int]) -> str:
    found = [str(e) for e in events]
    return "events " + ", ".join(found[-20:]) if found else "no event"
