"""Workflows that do everything which is counted, logged and traced."""

from __future__ import annotations

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPolicy,
    JoinFailedError,
    action,
    compensate,
    join,
    unit,
)
from tests.support.acts import Receipt
from tests.support.acts import refund as undo_of_child
from tests.support.calls import charge, explode, note, refund, reserve, ship


@workflow.defn
class Told(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> None:
        await getattr(self, how)()

    async def good(self) -> None:
        await reserve("a")
        await charge("b")
        await ship("a")

    async def fails(self) -> None:
        await reserve("a")
        await note("between")
        await charge("b")
        await explode()

    async def gives_up(self) -> None:
        await reserve("stuck")
        await charge("b")
        await explode()

    async def joins(self) -> None:
        try:
            await join(charge("a"), self.charges_and_explodes())
        except JoinFailedError:
            await note("after")

    async def charges_and_explodes(self) -> None:
        await charge("b")
        await explode()

    async def by_hand(self) -> None:
        await refund(await charge("a"))

    async def asks(self) -> None:
        await compensate()
        async with unit():
            await charge("a")
            await compensate()

    async def leaves_running(self) -> None:
        call = asyncio.create_task(charge("late", "telemetry"))
        await note("meanwhile")
        call.cancelled()

    async def retries(self) -> None:
        await charge("again")
        await explode()

    async def commits(self) -> None:
        await reserve("a")
        await ship("a")

    async def undoes_a_part_and_goes_on(self) -> None:
        await charge("main")
        try:
            async with unit():
                await charge("part")
                await explode()
        except ActivityError:
            workflow.continue_as_new("good")

    async def goes_on(self) -> None:
        await charge("first")
        workflow.continue_as_new("fails_next")

    async def fails_next(self) -> None:
        await charge("second")
        await explode()


@workflow.defn
class ToldTogether(CompensatedWorkflow):
    """What it did at the same time is undone at the same time."""

    compensation = CompensationPolicy(order="causal")

    @workflow.run
    async def run(self) -> None:
        await asyncio.gather(charge("a"), reserve("b"))
        await explode()


@action(compensate_with=undo_of_child)
@workflow.defn
class ToldChild(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> Receipt:
        await note("child")
        return Receipt("child")


@workflow.defn
class ToldParent(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_child_workflow(ToldChild.run)
        await explode()


@workflow.defn
class ToldByHandlers(CompensatedWorkflow):
    """Ends because a signal handler fails."""

    @workflow.run
    async def run(self) -> None:
        await charge("main")
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    async def stop(self) -> None:
        await charge("handler")
        raise ApplicationError("stop", type="Stopped")

    @workflow.update
    async def refuse(self) -> None:
        await charge("update")
        raise ApplicationError("no", type="Refused")


@workflow.defn
class ToldAtGate(CompensatedWorkflow):
    """Its second undo may wait at a gate."""

    @workflow.run
    async def run(self) -> None:
        await reserve("gate")
        await charge("b")
        await explode()


@workflow.defn
class ToldTwice(CompensatedWorkflow):
    """Unwinds a part, and after a signal the run."""

    def __init__(self) -> None:
        self.go = False

    @workflow.signal
    def proceed(self) -> None:
        self.go = True

    @workflow.run
    async def run(self, fails: bool) -> None:
        await charge("main")
        try:
            async with unit():
                await charge("part")
                await explode()
        except ActivityError:
            await note("caught")
        await workflow.wait_condition(lambda: self.go)
        if fails:
            await explode()
