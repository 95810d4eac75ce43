"""Workflows that end in every way in which a run can end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, CompensationPolicy, LimitExceededError
from tests.support.acts import WORLD
from tests.support.calls import charge, explode, note, refund, release, reserve, ship


@workflow.defn
class Ending(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> str:
        await reserve("a")
        await charge("b")
        return str(await getattr(self, how)())

    async def good(self) -> str:
        return await ship("a")

    async def activity_error(self) -> str:
        await explode()
        return "unreachable"

    async def application_error(self) -> str:
        raise ApplicationError("declined", type="Declined")

    async def limit(self) -> str:
        raise LimitExceededError("budget spent")

    async def timeout(self) -> str:
        async with asyncio.timeout(0.05):
            await asyncio.sleep(3600)
        return "unreachable"

    async def wait(self) -> str:
        await workflow.wait_condition(lambda: False)
        return "unreachable"

    async def sleep(self) -> str:
        await asyncio.sleep(3600)
        return "unreachable"

    async def uncommitted(self) -> str:
        return "forgot to ship"

    async def catches(self) -> str:
        try:
            await explode()
        except ActivityError:
            await ship("a")
        return "went on"

    async def swallows_cancel(self) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await ship("a")
        return "finished all the same"


@workflow.defn
class Group(CompensatedWorkflow):
    """TaskGroup: the workflow's error is a group, which Temporal alone never closes a run for."""

    @workflow.run
    async def run(self, how: str) -> None:
        if how != "unnamed":
            await charge("first")
        async with asyncio.TaskGroup() as group:
            if how == "mixed":
                group.create_task(self.bug())
            if how == "two":
                group.create_task(self.fail("Later", 0.1))
            if how == "unnamed":
                group.create_task(note("x"))
            else:
                group.create_task(charge("beside", None))
            group.create_task(explode("Earlier"))

    async def bug(self) -> None:
        raise ValueError("a bug")

    async def fail(self, kind: str, delay: float) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise ApplicationError("also", type=kind)


class Unlucky(Exception):
    """A plain exception that a workflow may be configured to fail for."""


@workflow.defn
class Bug(CompensatedWorkflow):
    """Raises a plain exception until it is fixed, as a deploy would."""

    @workflow.run
    async def run(self) -> str:
        await charge("b")
        if "bug" in WORLD.broken:
            raise Unlucky("a bug")
        return "fixed"


@workflow.defn(failure_exception_types=[Unlucky])
class FailsForPlain(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> str:
        await charge("b")
        raise Unlucky("counts as a failure here")


@workflow.defn
class Signalled(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> str:
        await charge("main")
        if how == "returns meanwhile":
            await workflow.wait_condition(lambda: bool(WORLD.of(workflow.info().workflow_id)[2:]))
            return "returned"
        await workflow.wait_condition(lambda: False)
        return "unreachable"

    @workflow.signal
    async def break_it(self) -> None:
        await charge("handler")
        raise ApplicationError("from a signal", type="SignalFailed")

    @workflow.signal
    def break_at_once(self) -> None:
        raise ApplicationError("from a signal", type="SignalFailed")


@workflow.defn
class StillRunning(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> str:
        self.left = workflow.start_activity(
            "charge", args=["late", "still-running"], start_to_close_timeout=timedelta(seconds=30)
        )
        await note("x")
        return "returned"


@workflow.defn
class Allows(CompensatedWorkflow):
    compensation = CompensationPolicy(uncommitted="allow")

    @workflow.run
    async def run(self) -> str:
        await reserve("a")
        return "kept"


@workflow.defn
class OnlyCancel(CompensatedWorkflow):
    compensation = CompensationPolicy(triggers=frozenset({"run-cancel"}))

    @workflow.run
    async def run(self, how: str) -> None:
        await charge("a")
        if how == "fail":
            await explode()
        await asyncio.sleep(3600)


@workflow.defn
class OptsOut(CompensatedWorkflow):
    compensation = None

    @workflow.run
    async def run(self) -> None:
        await charge("a")
        await explode()


@workflow.defn
class UndoFails(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> None:
        await reserve("one")
        await reserve("broken")
        await charge("three")
        if how == "cancel":
            await asyncio.sleep(3600)
        if how == "uncommitted":
            return
        await explode("Original")


@workflow.defn
class Loop(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        for number in range(5):
            await charge(str(number))
        await explode()


@workflow.defn
class Caught(CompensatedWorkflow):
    """Undoes by hand in an except clause, then fails."""

    @workflow.run
    async def run(self) -> None:
        receipt = await reserve("a")
        payment = await charge("b")
        try:
            await explode()
        except ActivityError:
            await refund(payment)
            await release(receipt)
            raise
