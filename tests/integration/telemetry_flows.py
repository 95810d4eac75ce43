"""Workflows that do everything which is counted, logged and traced."""

from __future__ import annotations

import asyncio

from temporalio import workflow

from agboss_temporal import CompensatedWorkflow, JoinFailedError, compensate, join, unit
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

    async def goes_on(self) -> None:
        await charge("first")
        workflow.continue_as_new("fails_next")

    async def fails_next(self) -> None:
        await charge("second")
        await explode()
