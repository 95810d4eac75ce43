"""Families of workflows: grandchildren, siblings, and children that end at a bad moment."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow

from agboss_temporal import CompensatedWorkflow, JoinFailedError, action, join
from tests.support.acts import Receipt, refund
from tests.support.calls import charge, explode, note


def id_of(child: str) -> str:
    return f"{workflow.info().workflow_id}-{child}"


@workflow.defn
class Member(CompensatedWorkflow):
    """Acts, then has a child of the next level; the last level ends as it is told."""

    @workflow.run
    async def run(self, how: str, depth: int, level: int = 0) -> None:
        await charge(f"level {level}")
        if level < depth:
            await workflow.execute_child_workflow(
                Member.run, args=[how, depth, level + 1], id=id_of("child")
            )
        if how == "fail":
            await explode()
        if how == "wait":
            await workflow.wait_condition(lambda: False)


class Told(CompensatedWorkflow):
    """Has a signal that it waits for."""

    def __init__(self) -> None:
        self.go = False

    @workflow.signal
    def proceed(self) -> None:
        self.go = True


@workflow.defn
class Sibling(Told):
    """Acts, waits to be told, then fails or returns."""

    @workflow.run
    async def run(self, name: str, how: str) -> str:
        await charge(name)
        await workflow.wait_condition(lambda: self.go)
        if how == "fail":
            await explode()
        return name


@action(compensate_with=refund)
@workflow.defn
class Tour(Told):
    """A child that is an action, and has a child of its own."""

    @workflow.run
    async def run(self, how: str) -> Receipt:
        receipt = await charge("tour")
        if how == "nested":
            await workflow.execute_child_workflow(
                Sibling.run, args=["guide", "fail"], id=id_of("guide")
            )
        try:
            await workflow.wait_condition(lambda: self.go)
        except asyncio.CancelledError:
            if how != "stubborn":
                raise
        return receipt


@workflow.defn
class Household(Told):
    """A parent in many shapes."""

    @workflow.run
    async def run(self, how: str, queue: str | None = None, generation: int = 0) -> Any:
        self.queue = queue
        if generation:
            await charge("next run")
            await explode()
        await charge("parent")
        return await getattr(self, how)()

    def sibling(self, name: str, how: str) -> Any:
        return workflow.execute_child_workflow(Sibling.run, args=[name, how], id=id_of(name))

    def tour(self, how: str) -> Any:
        return workflow.execute_child_workflow(
            Tour.run, how, id=id_of("tour"), task_queue=self.queue
        )

    async def gathered(self) -> None:
        await asyncio.gather(self.sibling("a", "wait"), self.sibling("b", "fail"))

    async def grouped(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sibling("a", "wait"))
            group.create_task(self.sibling("b", "fail"))

    async def group_fails_itself(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sibling("a", "wait"))
            group.create_task(self.tour("plain"))
            await workflow.wait_condition(lambda: self.go)
            await explode()

    async def stubborn(self) -> None:
        self.task = asyncio.create_task(self.tour("stubborn"))
        await workflow.wait_condition(lambda: self.go)
        await explode()

    async def takes_a_tour(self) -> Any:
        return await self.tour("plain")

    async def gathers_a_tour(self) -> None:
        await asyncio.gather(self.tour("plain"), asyncio.sleep(3600))

    async def nested_tour(self) -> Any:
        return await self.tour("nested")

    async def tour_in_a_group(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.tour("plain"))
            group.create_task(asyncio.sleep(3600))

    async def abandons(self) -> None:
        for kind, arg in ((Tour, "plain"), (Sibling, "left")):
            args = [arg] if kind is Tour else [arg, "wait"]
            await workflow.start_child_workflow(
                kind.__name__,
                args=args,
                id=id_of(arg),
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            )
        await workflow.wait_condition(lambda: self.go)
        await explode()

    async def joined(self, how: str = "plain") -> None:
        try:
            await join(self.tour(how), self.charges_then_fails())
        except JoinFailedError:
            await note("caught")
        await charge("after")
        await explode()

    async def joined_with_stubborn(self) -> None:
        await self.joined("stubborn")

    async def charges_then_fails(self) -> None:
        await charge("branch")
        await workflow.wait_condition(lambda: self.go)
        await explode()

    async def waits(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def travel(self) -> str:
        await charge("in handler")
        receipt = await self.tour("plain")
        return str(receipt.item)

    async def renews_beside_a_sibling(self) -> None:
        await workflow.start_child_workflow(Sibling.run, args=["a", "wait"], id=id_of("a"))
        await self.renew()

    async def renews_beside_a_tour(self) -> None:
        self.task = asyncio.create_task(self.tour("plain"))
        await self.renew()

    async def renews_beside_a_stubborn_tour(self) -> None:
        self.task = asyncio.create_task(self.tour("stubborn"))
        await self.renew()

    async def renew(self) -> None:
        await workflow.wait_condition(lambda: self.go)
        workflow.continue_as_new(args=["unused", None, 1])

    async def two_tours(self) -> None:
        first = asyncio.create_task(self.tour("plain"))
        await self.sibling("between", "return")
        await charge("after")
        await first
        await explode()
