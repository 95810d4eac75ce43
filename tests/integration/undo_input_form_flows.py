"""Undos that are given arguments, a context or nothing, and activities that are methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, UndoContext, action
from tests.integration.undo_input_seen import Narrow, Order, saw
from tests.support.acts import WORLD
from tests.support.calls import ONCE, explode


@activity.defn
async def undo_with_args(order: Order, remark: str) -> None:
    saw(order, remark)


@action(compensate_with=undo_with_args, undo_input="args")
@activity.defn
async def do_with_args(order: Order, remark: str) -> Narrow:
    return Narrow(5)


@activity.defn
async def undo_with_context(ctx: UndoContext) -> None:
    saw(ctx, ctx.args(Order, str), ctx.args(), ctx.result(Narrow), ctx.result())


@action(compensate_with=undo_with_context, undo_input="context")
@activity.defn
async def do_with_context(order: Order, remark: str) -> Narrow:
    return Narrow(5)


@activity.defn
def undo_in_thread(ctx: UndoContext) -> None:
    saw(ctx, ctx.args(Order, str), ctx.args(), ctx.result(Narrow), ctx.result())
    WORLD.did("undo in thread")


@action(compensate_with=undo_in_thread, undo_input="context")
@activity.defn
def do_in_thread(order: Order, remark: str) -> Narrow:
    WORLD.did("do in thread")
    return Narrow(5)


@activity.defn
async def undo_with_nothing() -> None:
    WORLD.did("undo with nothing")


@action(compensate_with="undo_with_nothing", undo_input="nothing")
@activity.defn
async def do_with_nothing(order: Order, remark: str) -> Narrow:
    return Narrow(5)


@action(compensate_with=undo_with_nothing)
@activity.defn
async def do_for_no_parameters(order: Order, remark: str) -> Narrow:
    return Narrow(5)


class Desk:
    """Activities that are methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    @activity.defn(name="desk-cancel")
    async def cancel(self, booked: Narrow) -> None:
        WORLD.did(f"{self.name}: cancel {booked.a}")

    @action(compensate_with=cancel)
    @activity.defn(name="desk-book")
    async def book(self, number: int) -> Narrow:
        WORLD.did(f"{self.name}: book {number}")
        return Narrow(number)


FORMS: list[Callable[..., Any]] = [
    undo_with_args,
    do_with_args,
    undo_with_context,
    do_with_context,
    undo_in_thread,
    do_in_thread,
    undo_with_nothing,
    do_with_nothing,
    do_for_no_parameters,
]


@workflow.defn
class Takes(CompensatedWorkflow):
    """Calls one action with two arguments, changes them, fails."""

    @workflow.run
    async def run(self, called: str, private: str) -> None:
        order = Order("book", [private])
        await workflow.execute_activity(called, args=[order, "by post"], **ONCE)
        order.lines.append("changed later")
        raise ApplicationError(f"out of {private}", type="OutOfStock")


@workflow.defn
class ErrorOfActivity(CompensatedWorkflow):
    """Fails with what an activity raised."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(do_with_context, args=[Order("x"), "y"], **ONCE)
        await explode("Declined")


@workflow.defn
class Books(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity_method(Desk.book, 7, **ONCE)
        await explode()
