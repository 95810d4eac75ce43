"""Units, joins and handlers that end at the same time as something else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, join, unit
from tests.support.calls import charge, note, refund, reserve, ship


class OddError(BaseException):
    """Neither a failure nor a cancel."""


def refused() -> ApplicationError:
    return ApplicationError("no", type="Refused")


class Racing(CompensatedWorkflow):
    def __init__(self) -> None:
        self.go = False
        self.ended = False
        self.woken = asyncio.Event()
        self.tasks: list[asyncio.Task[Any]] = []

    @property
    def gate(self) -> str:
        return workflow.info().workflow_id

    @workflow.signal
    def proceed(self) -> None:
        self.go = True


@workflow.defn(failure_exception_types=[TypeError])
class Races(Racing):
    @workflow.run
    async def run(self, how: str) -> Any:
        return await getattr(self, how)()

    async def waits(self) -> str:
        await workflow.wait_condition(lambda: self.go)
        return "returned"

    async def returns_when_woken(self) -> str:
        await self.woken.wait()
        return "returned"

    async def renews_when_woken(self) -> None:
        await self.woken.wait()
        workflow.continue_as_new("renewed")

    async def renews_when_told(self) -> None:
        await workflow.wait_condition(lambda: self.go)
        workflow.continue_as_new("renewed")

    async def renewed(self) -> str:
        return "renewed"

    async def uncommitted_when_told(self) -> str:
        await reserve("a")
        return await self.waits()

    @workflow.signal
    async def fails_when_signalled(self) -> None:
        await charge("of the signal")
        self.woken.set()
        await workflow.wait_condition(lambda: self.ended)
        raise refused()

    @workflow.update
    async def charges_and_hangs(self) -> None:
        await charge("x")
        await charge("y", self.gate)

    @workflow.update
    async def lets_the_run_return_and_fails(self) -> None:
        """The run returns while this is undone, and a signal handler fails meanwhile."""
        await charge("of the update")
        self.go = True
        raise refused()

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.update
    async def wakes_and_fails(self) -> None:
        await charge("x")
        self.woken.set()
        raise refused()

    @workflow.update
    async def charges_twice_and_fails(self) -> None:
        await charge("first")
        await charge("second", self.gate)
        raise refused()

    @workflow.update
    async def returns_what_cannot_be_sent(self) -> Any:
        await charge("x")
        return object()

    @workflow.update
    async def first_call_never_sent(self) -> None:
        task = asyncio.create_task(charge("never"))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ActivityError):
            await task
        await charge("second")

    @workflow.update
    async def reserves_and_fails(self) -> None:
        await reserve("a")
        self.woken.set()
        await workflow.wait_condition(lambda: self.go)
        raise refused()

    async def ships_when_woken(self) -> str:
        await self.woken.wait()
        await ship("a", self.gate)
        return "shipped"

    async def unit_fails_beside_the_end(self) -> str:
        async def fails() -> None:
            async with unit():
                await charge("x")
                self.woken.set()
                raise refused()

        self.tasks.append(asyncio.create_task(fails()))
        return await self.returns_when_woken()

    async def undone_from_outside(self) -> str:
        """A unit fails while an undo of what it opened, called elsewhere, is about to fail."""
        given: list[Any] = []

        async def opens() -> None:
            with contextlib.suppress(ApplicationError):
                async with unit():
                    given.append(await charge(self.gate))
                    self.woken.set()
                    await workflow.wait_condition(lambda: self.go)
                    raise refused()
            await note("unit over")

        async def undoes() -> None:
            await self.woken.wait()
            async with unit():
                with contextlib.suppress(ActivityError):
                    await refund(given[0])

        await asyncio.gather(opens(), undoes())
        return "went on"

    async def committed_from_outside(self) -> str:
        """A unit fails while the committer of what it opened runs outside of it."""
        self.tasks.append(asyncio.create_task(self.ships_when_woken()))
        with contextlib.suppress(ApplicationError):
            async with unit():
                await reserve("a")
                self.woken.set()
                await workflow.wait_condition(lambda: self.go)
                raise refused()
        await note("unit over")
        return str(await self.tasks[0])

    async def committer_never_sent(self) -> str:
        async with unit():
            await reserve("a")
        task = asyncio.create_task(ship("never"))
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ActivityError):
            await task
        async with unit():
            await ship("a")
        return "shipped"

    async def odd_branch(self) -> str:
        async def odd() -> None:
            await charge("x")
            raise OddError

        try:
            await join(odd(), charge("y"))
        except OddError:
            return "passed on"
        return ""


@workflow.defn
class OptedOutBug(CompensatedWorkflow):
    compensation = None

    @workflow.run
    async def run(self) -> None:
        async def bug() -> None:
            raise KeyError("a bug")

        await join(bug())
