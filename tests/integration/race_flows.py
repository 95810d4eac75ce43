"""Workflows whose activities run on another queue, so that a test can time their completions."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    import anyio

from agboss_temporal import CompensatedWorkflow
from tests.support.calls import charge, explode, note, refund, reserve, ship

CANCEL_TYPES = {
    "try": workflow.ActivityCancellationType.TRY_CANCEL,
    "wait": workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    "abandon": workflow.ActivityCancellationType.ABANDON,
}


@workflow.defn
class Race(CompensatedWorkflow):
    """One named call is in flight at a gate when the test cancels the run."""

    @workflow.run
    async def run(self, role: str, cancel_type: str, activities: str) -> None:
        options: dict[str, Any] = {
            "task_queue": activities,
            "cancellation_type": CANCEL_TYPES[cancel_type],
        }
        item = workflow.info().workflow_id
        if role == "action":
            await charge(item, f"charge:{item}", **options)
        elif role == "committer":
            await reserve(item, task_queue=activities)
            await ship(item, f"ship:{item}", **options)
        else:
            await refund(await charge(item, task_queue=activities), **options)
        await asyncio.sleep(3600)


@workflow.defn
class InFlight(CompensatedWorkflow):
    """Cancelled while an action runs, in many shapes of awaiting it."""

    @workflow.run
    async def run(self, shape: str) -> str:
        self.gate = workflow.info().workflow_id
        await charge("before")
        seen = await getattr(self, shape)()
        return str(seen)

    def slow(self) -> Any:
        return charge("slow", self.gate)

    async def direct(self) -> None:
        await self.slow()
        await charge("never")

    async def gathered(self) -> None:
        await asyncio.gather(self.slow(), asyncio.sleep(3600))
        await charge("never")

    async def grouped(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3600))
            for _ in range(8):
                group.create_task(charge("beside", self.gate))
            group.create_task(self.slow())
        await charge("never")

    async def shielded(self) -> None:
        await asyncio.shield(self.slow())
        await charge("never")

    async def in_a_task(self) -> None:
        await asyncio.create_task(self.slow())
        await charge("never")

    async def waited(self) -> None:
        await workflow.wait([asyncio.create_task(self.slow())])
        await charge("never")

    async def wait_for(self) -> None:
        await asyncio.wait_for(self.slow(), 3600)
        await charge("never")

    async def never_awaited(self) -> None:
        self.handle = workflow.start_activity(
            "charge", args=["slow", self.gate], start_to_close_timeout=timedelta(seconds=30)
        )
        await asyncio.sleep(3600)


@workflow.defn
class TimesOut(CompensatedWorkflow):
    """An asyncio timeout around an action ends when the action settles."""

    @workflow.run
    async def run(self) -> str:
        gate = workflow.info().workflow_id
        try:
            async with asyncio.timeout(0.2):
                await charge("slow", gate)
        except TimeoutError:
            await note("timed out")
            raise
        return "unreachable"


@workflow.defn
class EveryTurn(CompensatedWorkflow):
    """A scope that delivers its cancel on every turn of the loop, as level-triggered scopes do."""

    @workflow.run
    async def run(self, how: str) -> str:
        gate = workflow.info().workflow_id
        await charge("before")
        work = asyncio.create_task(self.scope(gate, how))
        await workflow.wait_condition(lambda: self.go)
        self.turns = 0

        def deliver() -> None:
            if not work.done():
                self.turns += 1
                work.cancel()
                asyncio.get_running_loop().call_soon(deliver)

        deliver()
        await workflow.wait([work])
        if how == "goes on":
            await note(f"let go within ten turns: {self.turns < 10}")
        await explode()
        return "unreachable"

    go = False

    async def scope(self, gate: str, how: str) -> None:
        if how == "gathered":
            await asyncio.gather(charge("slow", gate), asyncio.sleep(3600))
        await charge("slow", gate)

    @workflow.signal
    def cancel_scope(self) -> None:
        self.go = True


@workflow.defn(sandboxed=False)
class Anyio(CompensatedWorkflow):
    """A cancel scope of anyio, which is level-triggered; alone, Temporal deadlocks on it."""

    @workflow.run
    async def run(self) -> None:
        with anyio.move_on_after(0.1) as scope:
            await charge("slow", workflow.info().workflow_id)
        await note(f"scope cancelled: {scope.cancelled_caught}")
        await explode()


@workflow.defn
class SlowUndo(CompensatedWorkflow):
    """The test holds its undo at a gate."""

    @workflow.run
    async def run(self, how: str) -> None:
        item = workflow.info().workflow_id
        await charge("first")
        await charge(item)
        if how == "fail":
            await explode()
        await asyncio.sleep(3600)

    @workflow.signal
    async def noise(self) -> None:
        await note("signalled")


@workflow.defn
class CancelFirst(CompensatedWorkflow):
    """A cancel is pending when the action is called."""

    @workflow.run
    async def run(self) -> None:
        await charge("before")
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await charge("never sent")


@workflow.defn
class Refused(CompensatedWorkflow):
    """A background task wants to act while the run unwinds."""

    @workflow.run
    async def run(self) -> None:
        item = workflow.info().workflow_id
        await charge(item)
        self.background = asyncio.create_task(self.act_again())
        await explode()

    async def act_again(self) -> None:
        await workflow.wait_condition(lambda: self.go)
        try:
            await charge("too late")
        except Exception as err:
            await note(type(err).__name__ + ":" + str(getattr(err, "type", "")))

    go = False

    @workflow.signal
    def act(self) -> None:
        self.go = True


@workflow.defn
class CompensateCancelled(CompensatedWorkflow):
    """Cancelled while compensate() is at work."""

    @workflow.run
    async def run(self) -> None:
        from agboss_temporal import compensate

        item = workflow.info().workflow_id
        await charge("first")
        await charge(item)
        try:
            await explode()
        except ActivityError:
            await compensate()
            await charge("never")


@workflow.defn
class ManyUndos(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        for number in range(5):
            await charge(str(number))
        await workflow.wait_condition(lambda: False)
