"""What the server says of runs, whatever their status: the SDK's own records know fewer of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    ListWorkflowExecutionsRequest,
)
from temporalio.client import Client

_S = WorkflowExecutionStatus
_CLOSED: Final = {
    _S.WORKFLOW_EXECUTION_STATUS_COMPLETED: "completed",
    _S.WORKFLOW_EXECUTION_STATUS_FAILED: "failed",
    _S.WORKFLOW_EXECUTION_STATUS_CANCELED: "cancelled",
    _S.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
    _S.WORKFLOW_EXECUTION_STATUS_TIMED_OUT: "timed_out",
    _S.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: "continued_as_new",
}


@dataclass(frozen=True, slots=True)
class Execution:
    """A run as the server describes it.

    Attributes:
        workflow_id: Its workflow.
        run_id: Its id.
        workflow_type: Its type.
        how: How it was closed, as in a ledger; ``None`` while it is open, running or paused.
        history_length: How many events it has.
        first_run_id: The first run of its chain.
        reset_run_id: The last run that a reset has made from it; empty in a list.
        closed_at: When it was closed.
    """

    workflow_id: str
    run_id: str
    workflow_type: str
    how: str | None
    history_length: int = 0
    first_run_id: str = ""
    reset_run_id: str = ""
    closed_at: datetime | None = None

    @classmethod
    def of(cls, info: Any, reset_run_id: str = "") -> Self:
        """Read the server's record."""
        closed_at = info.close_time.ToDatetime(tzinfo=UTC) if info.HasField("close_time") else None
        return cls(
            workflow_id=info.execution.workflow_id,
            run_id=info.execution.run_id,
            workflow_type=info.type.name,
            how=_CLOSED.get(info.status),
            history_length=info.history_length,
            first_run_id=info.first_run_id,
            reset_run_id=reset_run_id,
            closed_at=closed_at,
        )


async def describe(client: Client, workflow_id: str, run_id: str | None = None) -> Execution:
    """Describe a run, or the newest one.

    Raises:
        temporalio.service.RPCError: It is not there, or cannot be asked for.
    """
    answer = await client.workflow_service.describe_workflow_execution(
        DescribeWorkflowExecutionRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id or ""),
        ),
        retry=True,
    )
    reset_run_id = answer.workflow_extended_info.reset_run_id
    return Execution.of(answer.workflow_execution_info, reset_run_id)


async def listed(client: Client, query: str) -> AsyncIterator[Execution]:
    """List the runs that a query finds, page by page.

    Raises:
        temporalio.service.RPCError: The query is refused, or the server cannot list.
    """
    token = b""
    while True:
        page = await client.workflow_service.list_workflow_executions(
            ListWorkflowExecutionsRequest(
                namespace=client.namespace, query=query, next_page_token=token
            ),
            retry=True,
        )
        for info in page.executions:
            yield Execution.of(info)
        token = page.next_page_token
        if not token:
            return
