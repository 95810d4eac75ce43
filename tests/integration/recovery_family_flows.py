"""Parents that are stopped while their children have done something."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from agboss_temporal import CompensatedWorkflow, action
from tests.integration.family_flows import id_of
from tests.support.acts import Receipt, refund
from tests.support.calls import charge


@workflow.defn
class Heir(CompensatedWorkflow):
    """Charges, continues as new so many times, then waits."""

    @workflow.run
    async def run(self, left: int, generation: int = 0) -> None:
        await charge(f"generation {generation}")
        if left:
            workflow.continue_as_new(args=[left - 1, generation + 1])
        await workflow.wait_condition(lambda: False)


@action(compensate_with=refund)
@workflow.defn
class Voyage(CompensatedWorkflow):
    """A child that is an action; goes on until it is told."""

    def __init__(self) -> None:
        self.over = False

    @workflow.signal
    def land(self) -> None:
        self.over = True

    @workflow.run
    async def run(self) -> Receipt:
        receipt = await charge("leg")
        await workflow.wait_condition(lambda: self.over)
        return Receipt(f"voyage with {receipt.item}")


@workflow.defn
class Head(CompensatedWorkflow):
    """Charges, starts a child in some way, charges again, waits."""

    @workflow.run
    async def run(self, how: str) -> None:
        await charge("before")
        await getattr(self, how)()
        await charge("after")
        await workflow.wait_condition(lambda: False)

    async def has_an_heir(self) -> None:
        await workflow.start_child_workflow(Heir.run, args=[2], id=id_of("child"))

    async def travels(self) -> None:
        await workflow.start_child_workflow(
            Voyage.run, id=id_of("child"), parent_close_policy=workflow.ParentClosePolicy.ABANDON
        )

    async def retries(self) -> None:
        options: dict[str, Any] = {
            "run_timeout": timedelta(seconds=1),
            "retry_policy": RetryPolicy(maximum_attempts=2),
        }
        await workflow.start_child_workflow(Heir.run, args=[0], id=id_of("child"), **options)
