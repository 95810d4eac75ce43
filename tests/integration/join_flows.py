"""Branches that succeed together or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, JoinFailedError, join, report, unit
from tests.support.acts import Receipt
from tests.support.calls import charge, explode, note, reserve, ship


async def booked(*items: str) -> list[str]:
    """Charge one item after another."""
    return [(await charge(item)).item for item in items]


async def books_then_fails(item: str, kind: str = "Boom") -> None:
    await charge(item)
    await explode(kind)


@workflow.defn
class Joins(CompensatedWorkflow):
    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self, how: str) -> Any:
        return await getattr(self, how)()

    @workflow.signal
    def proceed(self) -> None:
        self.go = True

    @property
    def gate(self) -> str:
        return workflow.info().workflow_id

    async def all_good(self) -> list[Any]:
        return await join(booked("a", "b"), booked("c"), note("plain"))

    async def all_good_then_fails(self) -> None:
        await join(booked("a"), booked("b"))
        await explode("Later")

    async def nothing(self) -> list[Any]:
        return await join()

    async def one_fails(self) -> str:
        await charge("before")
        try:
            await join(
                booked("one", "two"),
                charge("slow", self.gate),
                self.fails_when_told("three"),
            )
        except JoinFailedError as err:
            cause = err.__cause__
            assert isinstance(cause, ActivityError)
            await note(f"failed: {getattr(cause.cause, 'type', '')}")
        await charge("alternative")
        return report().status

    async def fails_when_told(self, item: str) -> None:
        await charge(item)
        await workflow.wait_condition(lambda: self.go)
        await explode()

    async def one_fails_then_the_run(self) -> None:
        await self.one_fails()
        await explode("Later")

    async def uncaught(self) -> None:
        await join(books_then_fails("a"), booked("b"))

    async def final_error(self) -> None:
        async def fails() -> None:
            await charge("a")
            raise ApplicationError("final", type="Final", non_retryable=True)

        await join(fails())

    async def a_bug(self) -> None:
        async def buggy() -> None:
            await charge("a")
            if not self.go:
                raise KeyError("a bug")
            await note("cured")

        await join(buggy())

    async def own_error(self) -> str:
        async def refuses() -> None:
            await charge("a")
            raise LookupError("ordinary")

        try:
            await join(refuses(), booked("b"))
        except JoinFailedError as err:
            return type(err.__cause__).__name__
        return ""

    async def cancelled(self) -> None:
        await charge("before")
        await join(booked("a"), charge("slow", self.gate))

    async def cancelled_and_failing(self) -> None:
        """A branch fails, and while the others settle the run is cancelled."""
        try:
            await join(charge("slow", self.gate), explode())
        except JoinFailedError:
            await note("went on")

    async def nested(self) -> list[str]:
        seen = []

        async def inner() -> None:
            try:
                await join(books_then_fails("x"), booked("y"))
            except JoinFailedError:
                seen.append("inner failed")
            await charge("z")

        try:
            await join(inner(), self.after("z", explode))
        except JoinFailedError:
            seen.append("outer failed")
        return seen

    async def after(self, item: str, then: Any) -> None:
        await workflow.wait_condition(lambda: self.go)
        await charge(f"after {item}")
        await then()

    async def in_a_unit(self) -> None:
        async with unit("trip"):
            await charge("base")
            await join(booked("a"), booked("b"))
            raise ApplicationError("trip", type="TripFailed")

    async def a_branch_cleans_up(self) -> str:
        """A cancelled branch may still do something; what it opens is undone as well."""

        async def stubborn() -> None:
            try:
                await charge("slow", self.gate)
            finally:
                await charge("cleanup")

        try:
            await join(stubborn(), explode())
        except JoinFailedError:
            await note("caught")
        return "went on"

    async def commits_in_a_branch(self) -> None:
        async def reserves(item: str) -> Receipt:
            return await reserve(item)

        async def ships() -> None:
            await workflow.wait_condition(lambda: self.go)
            await ship("a")
            await explode()

        try:
            await join(reserves("a"), ships())
        except JoinFailedError:
            await note("caught")

    async def several_fail(self) -> str:
        try:
            await join(explode("First"), explode("Second"), booked("x"))
        except JoinFailedError as err:
            return err.message
        return ""

    async def in_a_task_group(self) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(join(booked("a"), explode()))
                group.create_task(charge("beside", self.gate))
        except* JoinFailedError:
            await note("caught")
        return "went on"

    async def continues(self) -> None:
        async def renews() -> None:
            await charge("carried")
            workflow.continue_as_new("all_carried")

        await join(renews(), booked("a"))

    async def all_carried(self) -> None:
        await explode()

    async def refuses_started(self) -> str:
        task = asyncio.create_task(booked("a"))
        try:
            await join(task, booked("b"), asyncio.get_running_loop().create_future())  # type: ignore[arg-type]
        except TypeError as err:
            await task
            return str(err)
        return ""
