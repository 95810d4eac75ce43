"""Workflows that are evicted at some point; their activities never run."""

from __future__ import annotations

import asyncio

from temporalio import workflow

from agboss_temporal import CompensatedWorkflow, compensate, join, unit
from tests.support.acts import Receipt
from tests.support.calls import charge, explode, note, refund, reserve


@workflow.defn(sandboxed=False)
class InFlight(CompensatedWorkflow):
    """Waits for a named call in some shape; one more is open."""

    @workflow.run
    async def run(self, shape: str) -> None:
        await charge("before")
        await getattr(self, shape)()
        await asyncio.sleep(3600)

    async def direct(self) -> None:
        await charge("slow")

    async def gathered(self) -> None:
        await asyncio.gather(charge("slow"), reserve("beside"))

    async def grouped(self) -> None:
        async with asyncio.TaskGroup() as group:
            for item in ("slow", "beside"):
                group.create_task(charge(item))

    async def shielded(self) -> None:
        await asyncio.shield(charge("slow"))

    async def limited(self) -> None:
        async with asyncio.timeout(3600):
            await charge("slow")

    async def in_background(self) -> None:
        self.task = asyncio.create_task(charge("slow"))

    async def undoing(self) -> None:
        await refund(await charge("slow"))

    async def in_a_unit(self) -> None:
        async with unit():
            await charge("slow")

    async def joined(self) -> None:
        await join(charge("slow"), charge("beside"))

    async def resting(self) -> None:
        await workflow.wait_condition(lambda: False)


@workflow.defn(sandboxed=False)
class Parts(CompensatedWorkflow):
    """Undoes a part of itself when ``explode`` fails."""

    @workflow.run
    async def run(self, shape: str) -> None:
        await charge("before")
        await getattr(self, shape)()

    async def in_a_unit(self) -> None:
        async with unit():
            await charge("inside")
            await explode()

    async def joined(self) -> None:
        await join(charge("inside"), explode())

    async def resting(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def change(self) -> None:
        await charge("inside")
        await explode()


@workflow.defn(sandboxed=False)
class CleansUp(CompensatedWorkflow):
    """Undoes by hand, in every place where people do it."""

    @workflow.run
    async def run(self, shape: str) -> None:
        self.receipt = await charge("before")
        await getattr(self, shape)()

    async def work(self) -> None:
        await charge("slow")

    async def except_exception(self) -> None:
        try:
            await self.work()
        except Exception:
            await refund(self.receipt)
            raise

    async def except_base_exception(self) -> None:
        try:
            await self.work()
        except BaseException:
            await refund(self.receipt)
            raise

    async def except_cancelled(self) -> None:
        try:
            await self.work()
        except asyncio.CancelledError:
            await refund(self.receipt)
            raise

    async def lastly(self) -> None:
        try:
            await self.work()
        finally:
            await refund(self.receipt)

    async def lastly_compensates(self) -> None:
        try:
            await self.work()
        finally:
            await compensate()

    async def swallows(self) -> None:
        try:
            await self.work()
        except asyncio.CancelledError:
            await compensate()

    async def continues(self) -> None:
        try:
            await self.work()
        except asyncio.CancelledError:
            workflow.continue_as_new("resting")

    async def compensates(self) -> None:
        self.other = asyncio.create_task(self.work())
        await asyncio.sleep(0)
        try:
            await compensate()
        except asyncio.CancelledError:
            self.took_it_for_a_cancel = True
            raise

    took_it_for_a_cancel = False

    async def lastly_in_a_task(self) -> None:
        await asyncio.shield(asyncio.create_task(self.lastly()))


@workflow.defn(sandboxed=False)
class Ends(CompensatedWorkflow):
    """Is unwound; or compensates, or is ended by a handler."""

    @workflow.run
    async def run(self, how: str) -> None:
        await asyncio.gather(charge("first"), charge("second"))
        if how == "uncommitted":
            await reserve("third")
            return
        if how == "settles":
            await asyncio.gather(charge("slow"), explode())
        if how == "compensates":
            await compensate()
        if how == "continues":
            self.other = asyncio.create_task(charge("slow"))
            await asyncio.sleep(0)
            workflow.continue_as_new("resting")
        if how == "fails":
            await explode()
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    async def breaks(self) -> None:
        await explode()

    @workflow.signal
    async def acts(self) -> None:
        await charge("in the handler")

    @workflow.update
    async def updates(self) -> None:
        try:
            await charge("in the handler")
        finally:
            await refund(Receipt("in the handler"))


@workflow.defn(sandboxed=False)
class Inert(CompensatedWorkflow):
    """Has no named call."""

    @workflow.run
    async def run(self, _: str) -> None:
        await note("x")
