"""Chains of runs: what continues as new, retries, or comes again by a schedule."""

from __future__ import annotations

from temporalio.api.common.v1 import Payload

from agboss_temporal.core import carry
from tests.support.harness import Handle, Harness, events_of, until


async def next_run(run: Handle) -> str:
    """Return the id of the run that follows one, however it closed; empty for the last one."""
    last = (await events_of(run))[-1]
    kind = last.WhichOneof("attributes") or ""
    return str(getattr(getattr(last, kind), "new_execution_run_id", ""))


async def runs_of(harness: Harness, handle: Handle) -> list[Handle]:
    """List the runs of a chain, oldest first."""
    found = [harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)]
    while following := await next_run(found[-1]):
        found.append(harness.client.get_workflow_handle(handle.id, run_id=following))
    return found


async def until_run(harness: Harness, handle: Handle, number: int) -> Handle:
    """Wait for the run of a chain with this number, from 1."""

    async def there() -> bool:
        return len(await runs_of(harness, handle)) >= number

    await until(there)
    return (await runs_of(harness, handle))[number - 1]


async def memo_of(run: Handle) -> dict[str, Payload]:
    """Return the memo that a run was started with."""
    started = (await events_of(run))[0].workflow_execution_started_event_attributes
    return dict(started.memo.fields)


async def carried_bytes(run: Handle) -> int:
    """Say how large the record is with which a run was started."""
    memo = await memo_of(run)
    return len(memo[carry.MEMO].data) if carry.MEMO in memo else 0


async def finish_chain(harness: Harness, handle: Handle, workflow: type) -> list[Handle]:
    """Return the runs of a chain that has ended; each is replayed at the end of the test."""
    runs = await runs_of(harness, handle)
    harness._runs += [(run, [workflow]) for run in runs[1:]]
    return runs
