"""Parts of a run that are undone by themselves."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, compensate, report, unit
from tests.support.calls import charge, explode, note, refund, reserve, ship


class OutOfStockError(Exception):
    """An ordinary error of the workflow's own code."""


@workflow.defn
class Units(CompensatedWorkflow):
    def __init__(self) -> None:
        self.go = False
        self.tasks: list[asyncio.Task[Any]] = []

    @workflow.run
    async def run(self, how: str) -> Any:
        return await getattr(self, how)()

    @workflow.signal
    def proceed(self) -> None:
        self.go = True

    async def caught(self) -> str:
        await charge("before")
        try:
            async with unit("gift"):
                await charge("inside")
                await charge("too")
                await explode()
        except ActivityError as err:
            await note(f"caught {type(err.cause).__name__}")
        await charge("after")
        return report().status

    async def caught_then_fails(self) -> None:
        await self.caught()
        await explode("Later")

    async def own_error(self) -> str:
        try:
            async with unit():
                await charge("inside")
                raise OutOfStockError
        except OutOfStockError:
            await note("caught")
        return "went on"

    async def nested(self) -> None:
        async with unit("outer"):
            await charge("outer")
            try:
                async with unit("inner"):
                    await charge("inner")
                    await explode()
            except ActivityError:
                await note("inner failed")
            await charge("outer again")
            raise ApplicationError("outer", type="OuterFailed")

    async def handed_over(self) -> None:
        async with unit():
            async with unit():
                await charge("deep")
            await charge("shallow")
        await explode()

    async def sealed_rounds(self) -> None:
        for number in range(3):
            async with unit(seal=True):
                await charge(f"round {number}")
        async with unit(seal=True):
            await note("nothing to seal")
        await charge("rest")
        await explode()

    async def around_a_group(self) -> list[str]:
        seen = []
        try:
            async with unit(), asyncio.TaskGroup() as group:
                group.create_task(charge("one"))
                group.create_task(charge("two"))
                group.create_task(self.explode_later())
        except* ActivityError:
            seen.append("group")
        return seen

    async def explode_later(self) -> None:
        await workflow.sleep(0.01)
        await explode()

    async def around_gather(self) -> str:
        """What `gather` leaves running is settled before it is undone."""
        try:
            async with unit():
                await asyncio.gather(charge("slow", workflow.info().workflow_id), explode())
        except ActivityError:
            await note("caught")
        return "went on"

    async def inside_a_timeout(self) -> str:
        try:
            async with asyncio.timeout(60):
                async with unit():
                    await charge("inside")
                    await workflow.wait_condition(lambda: self.go)
        except TimeoutError:
            await note("timed out")
        return "went on"

    async def around_a_timeout(self) -> str:
        try:
            async with unit():
                await charge("inside")
                await asyncio.wait_for(workflow.wait_condition(lambda: self.go), 60)
        except TimeoutError:
            await note("timed out")
        return "went on"

    async def cancelled_inside(self) -> None:
        await charge("before")
        async with unit():
            await charge("inside")
            await workflow.wait_condition(lambda: self.go)

    async def cancelled_during_its_undo(self) -> str:
        try:
            async with unit():
                await charge(workflow.info().workflow_id)
                await explode()
        except ActivityError:
            await note("went on")
        return "not cancelled"

    async def compensates(self) -> str:
        await charge("before")
        async with unit():
            await charge("inside")
            await compensate()
            await charge("again")
        return report().status

    async def by_hand_inside(self) -> None:
        async with unit():
            first = await charge("first")
            await charge("second")
            await refund(first)
            await explode()

    async def outlived(self) -> None:
        """A task goes on when its unit has ended: its action belongs to the run."""
        async with unit():
            await charge("inside")
            self.tasks.append(asyncio.create_task(self.charge_when_told("late")))
        self.go = True
        await self.tasks[0]
        await explode()

    async def charge_when_told(self, item: str) -> None:
        await workflow.wait_condition(lambda: self.go)
        await charge(item)

    async def running_when_it_ends(self) -> None:
        async with unit():
            self.tasks.append(asyncio.create_task(charge("slow", workflow.info().workflow_id)))
            await charge("fast")
        await self.tasks[0]
        await explode()

    async def side_by_side(self) -> list[str]:
        """One unit is undone while the other goes on, and is not disturbed."""
        gate = workflow.info().workflow_id

        async def fails() -> None:
            async with unit("fails"):
                await charge(gate)
                await explode()

        async def works() -> str:
            async with unit("works"):
                await charge("other", f"{gate}-other")
                await charge("other too")
            return "worked"

        found = await asyncio.gather(fails(), works(), return_exceptions=True)
        return [str(getattr(f, "type", f)) if isinstance(f, str) else "failed" for f in found]

    async def both_undone(self) -> None:
        """Two units are undone at the same time; neither waits for the other."""

        async def fails(item: str) -> None:
            async with unit():
                await charge(item)
                await explode()

        gate = workflow.info().workflow_id
        await asyncio.gather(fails(gate), fails("quick"), return_exceptions=True)

    async def starts_during_its_unwind(self) -> str:
        async def late() -> str:
            await workflow.wait_condition(lambda: self.go)
            try:
                await charge("late")
            except ApplicationError as err:
                return str(err.type)
            return "started"

        try:
            async with unit():
                self.tasks.append(asyncio.create_task(late()))
                await charge(workflow.info().workflow_id)
                await explode()
        except ActivityError:
            pass
        return str(await self.tasks[0])

    async def undo_fails_inside(self) -> str:
        try:
            async with unit():
                await charge("broken")
                await explode()
        except ActivityError:
            await note("caught")
        return report().status

    async def undo_fails_inside_then_fails(self) -> None:
        await self.undo_fails_inside()
        await explode("Later")

    async def committer_of_a_sibling(self) -> None:
        """What a unit has handed over is committed from a unit that comes later."""
        async with unit():
            await reserve("a")
        async with unit():
            await ship("a")
        await explode()

    async def committer_beside(self) -> None:
        """A unit that is still open is not committed by its sibling."""

        async def reserves() -> None:
            async with unit():
                await reserve("a")
                await workflow.wait_condition(lambda: self.go)

        async def ships() -> None:
            async with unit():
                await ship("b")
            self.go = True

        await asyncio.gather(reserves(), ships())
        await explode()

    async def continues(self) -> None:
        async with unit():
            await charge("carried")
            workflow.continue_as_new("continued")

    async def continued(self) -> None:
        await explode()

    async def seals_and_continues(self) -> None:
        async with unit(seal=True):
            await charge("sealed")
        workflow.continue_as_new("memo_is_clean")

    async def memo_is_clean(self) -> list[str]:
        return sorted(workflow.memo())

    async def left_in_another_task(self) -> str:
        stack = contextlib.AsyncExitStack()
        await stack.enter_async_context(unit("moved"))
        await charge("inside")

        async def leave() -> None:
            async with stack:
                raise ApplicationError("no", type="Refused")

        try:
            await asyncio.create_task(leave())
        except ApplicationError:
            await note("caught")
        await charge("after")
        return report().status

    async def used_twice(self) -> str:
        part = unit()
        async with part:
            await charge("inside")
        try:
            async with part:
                pass
        except RuntimeError as err:
            return str(err)
        return ""

    async def many_units(self) -> int:
        for number in range(15):
            async with unit(f"round {number}"):
                receipt = await charge(f"{number}")
                await refund(receipt)
        return len(report().unwinds)

    async def waits_inside(self) -> None:
        async with unit():
            await charge("inside", start_to_close_timeout=timedelta(seconds=30))
            await workflow.sleep(timedelta(hours=1))
            raise ApplicationError("later", type="Later")


@workflow.defn
class OptedOut(CompensatedWorkflow):
    compensation = None

    @workflow.run
    async def run(self) -> str:
        try:
            async with unit():
                await charge("not recorded")
                await explode()
        except ActivityError:
            return "nothing undone"
        return ""


@workflow.defn
class Caller(CompensatedWorkflow):
    """A child in a unit: the unit asks it to cancel and waits for its own undo."""

    @workflow.run
    async def run(self) -> str:
        own = workflow.info().workflow_id
        try:
            async with unit():
                await workflow.start_child_workflow(
                    Units.run, "cancelled_inside", id=f"{own}-child"
                )
                await charge("parent", own)
                await explode()
        except ActivityError:
            await note("caught")
        return "went on"
