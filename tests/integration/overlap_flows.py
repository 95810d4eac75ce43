"""Two things at once: undos, endings, handlers and background tasks that overlap."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, CompensationFailedError, compensate
from tests.support import acts
from tests.support.calls import ONCE, charge, explode, note, refund, release, reserve, ship


@workflow.defn
class Overlap(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str, generation: int = 0) -> Any:
        if generation:
            return "went on"
        self.undos = asyncio.create_task(self.undo_when_asked())
        return await getattr(self, how)()

    def __init__(self) -> None:
        self.go = False
        self.asked: list[str | None] = []

    async def undo_when_asked(self) -> None:
        """Undo what the run has opened: in a handler, compensate() means what that one opened."""
        async with asyncio.TaskGroup() as group:
            while True:
                await workflow.wait_condition(lambda: bool(self.asked))
                group.create_task(self.undo_now(self.asked.pop(0)))

    async def undo_now(self, action: str | None) -> None:
        with contextlib.suppress(ApplicationError):
            await compensate(action)

    @workflow.signal
    def proceed(self) -> None:
        self.go = True

    @workflow.signal
    def undo(self) -> None:
        self.asked.append(None)

    @workflow.signal
    def undo_one(self, action: str) -> None:
        self.asked.append(action)

    @workflow.signal
    def renew(self) -> None:
        workflow.continue_as_new(args=["unused", 1])

    @workflow.signal
    def break_it(self) -> None:
        raise ApplicationError("from a signal", type="SignalFailed")

    async def two_gated(self) -> None:
        await charge("first")
        await charge(workflow.info().workflow_id)

    async def fails_and_renews(self) -> None:
        await self.two_gated()
        raise ApplicationError("main", type="MainFailed")

    async def renews_while_handler_fails(self) -> None:
        await self.two_gated()
        await workflow.wait_condition(lambda: self.go)
        workflow.continue_as_new(args=["unused", 1])

    async def ends_while_compensates_queue(self) -> None:
        await reserve("queued")
        await self.ends_during_compensate()

    async def ends_during_compensate(self) -> None:
        await charge(workflow.info().workflow_id)
        await workflow.wait_condition(lambda: self.go)
        raise ApplicationError("main", type="MainFailed")

    async def returns_during_compensate(self) -> str:
        await charge(workflow.info().workflow_id)
        await workflow.wait_condition(lambda: self.go)
        return "returned"

    async def refund_again(self) -> None:
        first = await charge("a")
        await charge("b")
        try:
            await explode()
        finally:
            await refund(first)
            await refund(first)

    async def release_what_is_sealed(self) -> None:
        sealed = await reserve("a")
        await ship("a")
        await reserve("b")
        await release(sealed)
        await explode()

    async def compensate_beside_its_committer(self) -> str:
        await reserve("a")
        task = asyncio.create_task(ship("a", workflow.info().workflow_id))
        await workflow.wait_condition(lambda: self.go)
        await compensate(acts.reserve)
        return await task

    async def timeout_around_compensate(self) -> list[str]:
        await charge(workflow.info().workflow_id)
        seen = []
        try:
            async with asyncio.timeout(0.2):
                await compensate()
        except TimeoutError:
            seen.append("timeout")
        except CompensationFailedError:
            seen.append("failed")
        await note("not cancelled")
        return seen

    async def two_awaiters(self) -> None:
        handle = workflow.start_activity(
            "charge", args=["b", workflow.info().workflow_id], result_type=acts.Receipt, **ONCE
        )

        async def wait() -> None:
            await handle

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(wait())
                group.create_task(wait())
                await workflow.wait_condition(lambda: self.go)
                group.create_task(explode())
        except* ActivityError:
            pass
        await note("after the group")

    async def awaits_what_is_undone(self) -> str:
        receipt = await charge("m", workflow.info().workflow_id)
        await note(f"delivered, paid by {receipt.item}")
        return "built on what was undone"

    async def commits_during_a_failing_undo(self) -> str:
        receipt = await reserve("broken")
        undo = asyncio.create_task(release(receipt, start_to_close_timeout=timedelta(seconds=5)))
        await asyncio.sleep(0)
        await ship("broken")
        try:
            await undo
        except ActivityError:
            await note("not released, but shipped")
        return "committed"

    async def acts_after_the_unwind(self) -> None:
        await charge("a")
        self.task = asyncio.create_task(self.act_when_undone())
        raise ApplicationError("main", type="MainFailed")

    async def act_when_undone(self) -> None:
        await workflow.wait_condition(lambda: "undone" in workflow.get_current_details())
        await charge("late")
