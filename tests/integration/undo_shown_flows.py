"""Undos whose calls are looked at: what is shown of them, and what must not be."""

from __future__ import annotations

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, UndoContext, action
from tests.integration.undo_input_seen import Narrow, Order
from tests.support.calls import ONCE, charge, explode, reserve

LONG = "höchst-" + "sehr-" * 60 + "langer-Name"


@activity.defn
async def undo_long(value: Narrow) -> None:
    pass


@action(compensate_with=undo_long)
@activity.defn(name=LONG)
async def do_long() -> Narrow:
    return Narrow(1)


@workflow.defn
class Shown(CompensatedWorkflow):
    @workflow.run
    async def run(self, own_details: str) -> None:
        if own_details:
            workflow.set_current_details(own_details)
        await reserve("one")
        await reserve("two")
        await charge("three")
        await explode()


@workflow.defn
class LongName(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(do_long, **ONCE)
        await explode()


# -- what must not be shown


@activity.defn
async def undo_private(ctx: UndoContext) -> None:
    _, remark = ctx.args(Order, str)
    if remark == "broken":
        raise ApplicationError(
            f"cannot undo {ctx.args(Order, str)[0].item}", type="UndoBroken", non_retryable=True
        )


@action(compensate_with=undo_private, undo_input="context")
@activity.defn
async def do_private(order: Order, remark: str) -> Order:
    return order


@workflow.defn
class Private(CompensatedWorkflow):
    @workflow.run
    async def run(self, secret: str) -> None:
        order = Order(secret)
        await workflow.execute_activity(do_private, args=[order, "fine"], **ONCE)
        await workflow.execute_activity(do_private, args=[order, "broken"], **ONCE)
        raise ApplicationError(f"failed with {secret}", type="Original")
