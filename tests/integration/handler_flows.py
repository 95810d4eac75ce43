"""Update and signal handlers that do things which may have to be undone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, report, unit
from tests.support.calls import charge, explode, note, reserve, ship

ABANDON = workflow.HandlerUnfinishedPolicy.ABANDON


@workflow.defn
class Handled(CompensatedWorkflow):
    """Waits until it is told to end; its handlers do the work."""

    def __init__(self) -> None:
        self.ending: str | None = None
        self.opened = False
        self.never = False

    @workflow.run
    async def run(self, first: str | None = None) -> Any:
        if first is not None:
            await charge(first)
        await workflow.wait_condition(lambda: self.ending is not None)
        match self.ending:
            case "fail":
                raise ApplicationError("main", type="MainFailed")
            case "ship":
                await ship("all")
                await explode()
            case "renew":
                workflow.continue_as_new("renewed")
        return report().status

    @workflow.signal
    def end(self, how: str) -> None:
        self.ending = how

    @workflow.update
    async def good(self, item: str) -> str:
        await charge(item)
        return item

    @workflow.update
    async def bad(self, item: str) -> None:
        await charge(item)
        await charge(f"{item} too")
        await explode()

    @workflow.update
    async def holds(self, item: str) -> str:
        """Opens something that waits for a committer, and something that does not."""
        await reserve(item)
        await charge(item)
        return item

    @workflow.update
    async def waits(self, item: str) -> None:
        await charge(item)
        self.opened = True
        await workflow.wait_condition(lambda: self.never)

    @workflow.update(unfinished_policy=ABANDON)
    async def waits_abandoned(self, item: str) -> None:
        await charge(item)
        try:
            await workflow.wait_condition(lambda: self.never)
        finally:
            await workflow.sleep(timedelta(days=300))

    @workflow.update
    async def cleans_up(self, item: str) -> None:
        await charge(item)
        try:
            await workflow.wait_condition(lambda: self.never)
        finally:
            await note(f"cleaned up {item}")

    @workflow.update
    async def gated(self, item: str) -> None:
        await charge(item, workflow.info().workflow_id)

    @workflow.update
    async def idle(self) -> None:
        await workflow.wait_condition(lambda: self.never)

    @workflow.update
    async def parts(self) -> None:
        async with unit("part"):
            await charge("in the part")
        await charge("beside it")
        await explode()

    @workflow.update
    async def grouped(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(charge("one"))
            group.create_task(self.explode_later())

    async def explode_later(self) -> None:
        await workflow.sleep(0.01)
        await explode()

    @workflow.update
    async def buggy(self) -> None:
        await charge("kept")
        raise KeyError("a bug")

    @workflow.signal
    async def adds(self, item: str) -> None:
        await charge(item)

    @workflow.signal
    async def breaks(self, item: str) -> None:
        await charge(item)
        raise ApplicationError("from a signal", type="SignalFailed")

    @workflow.signal
    async def signal_waits(self, item: str) -> None:
        await charge(item)
        await workflow.wait_condition(lambda: self.never)

    @workflow.signal
    async def renews(self, item: str) -> None:
        await charge(item)
        workflow.continue_as_new("renewed")

    @workflow.query
    def size(self) -> int:
        return len(report().entries)


@workflow.defn
class Entity(CompensatedWorkflow):
    """Lives on updates, as an account does."""

    def __init__(self) -> None:
        self.done = 0

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def change(self, number: int, fails: bool) -> int:
        receipt = await charge(f"item {number}")
        if fails:
            raise ApplicationError("refused", type="Refused")
        self.done += 1
        return int(bool(receipt))
