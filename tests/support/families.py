"""Parents, children and their children, by the ids that the scenarios give them."""

from __future__ import annotations

from temporalio.client import WorkflowExecutionStatus

from tests.support.harness import Handle, Harness, until, until_did, until_observed


def relative(harness: Harness, handle: Handle, *names: str) -> Handle:
    """Find the child, or the child's child, of a workflow."""
    return harness.client.get_workflow_handle("-".join([handle.id, *names]))


async def status_of(handle: Handle) -> WorkflowExecutionStatus | None:
    return (await handle.describe()).status


async def until_status(handle: Handle, status: WorkflowExecutionStatus) -> None:
    async def there() -> bool:
        return await status_of(handle) == status

    await until(there)


async def until_charged(handle: Handle, effect: str) -> None:
    """Wait until a workflow has acted, and has seen that it has."""
    await until_did(handle, effect)
    await until_observed(handle)
