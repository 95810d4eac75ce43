"""Parents and children."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

from agboss_temporal import CompensatedWorkflow, action
from tests.support.acts import Receipt, refund
from tests.support.calls import ONCE, charge, explode, note, reserve, ship


@action(compensate_with=refund)
@workflow.defn
class BookTrip(CompensatedWorkflow):
    """A child that a parent can undo as a whole."""

    @workflow.run
    async def run(self, how: str) -> Receipt:
        receipt = await charge("trip")
        if how == "fail":
            await explode()
        if how == "wait":
            await workflow.wait_condition(lambda: False)
        return receipt


@workflow.defn
class Known(CompensatedWorkflow):
    """A child that unwinds itself, and that nothing undoes."""

    @workflow.run
    async def run(self, how: str) -> str:
        await charge("child")
        if how == "wait":
            await workflow.wait_condition(lambda: False)
        if how == "fail":
            await explode()
        return "child done"


@workflow.defn
class ShipAll:
    """A child that commits what its parent did."""

    @workflow.run
    async def run(self) -> None:
        await note("shipped")


@workflow.defn
class Parent(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> str:
        await charge("parent")
        return str(await getattr(self, how)())

    def child_id(self) -> str:
        return workflow.info().workflow_id + "-child"

    async def undoes_finished_child(self) -> None:
        await workflow.execute_child_workflow(BookTrip.run, "ok", id=self.child_id())
        await charge("after")
        await explode()

    async def by_name(self) -> None:
        await workflow.execute_child_workflow("BookTrip", "ok", id=self.child_id())
        await explode()

    async def finished_child_stays(self) -> None:
        await workflow.execute_child_workflow(Known.run, "ok", id=self.child_id())
        await explode()

    async def child_fails(self) -> None:
        await workflow.execute_child_workflow(Known.run, "fail", id=self.child_id())

    async def action_child_fails(self) -> str:
        try:
            await workflow.execute_child_workflow(BookTrip.run, "fail", id=self.child_id())
        except ChildWorkflowError:
            return "caught"
        return "unreachable"

    async def child_runs(self) -> None:
        await workflow.start_child_workflow(Known.run, "wait", id=self.child_id())
        await workflow.wait_condition(lambda: self.fail)
        await explode()

    async def child_is_starting(self) -> None:
        self.task = asyncio.create_task(
            workflow.execute_child_workflow(Known.run, "wait", id=self.child_id())
        )
        await asyncio.sleep(0)
        raise ApplicationError("before the child has started", type="TooSoon")

    async def action_child_runs(self) -> None:
        await workflow.execute_child_workflow(BookTrip.run, "wait", id=self.child_id())

    async def abandoned_child(self) -> None:
        await workflow.start_child_workflow(
            Known.run,
            "wait",
            id=self.child_id(),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
        )
        await explode()

    async def abandoned_action_child(self) -> None:
        await workflow.start_child_workflow(
            BookTrip.run,
            "wait",
            id=self.child_id(),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
        )
        await explode()

    fail = False

    @workflow.signal
    def go(self) -> None:
        self.fail = True


@workflow.defn
class CommittedByChild(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity("hold", "a", **ONCE)
        await workflow.execute_child_workflow(
            ShipAll.run, id=workflow.info().workflow_id + "-child"
        )
        await explode()


@workflow.defn
class TwoLevels(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await reserve("a")
        await ship("a")
        await asyncio.sleep(0)
        await charge("b")
        await explode()
