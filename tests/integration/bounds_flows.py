"""Workflows whose undos give up, and actions that are too large or that nothing undoes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPolicy,
    LimitExceededError,
    UndoContext,
    action,
)
from tests.support.acts import WORLD
from tests.support.calls import ONCE, charge, explode, reserve

# -- undos that give up


@activity.defn
async def undo_in_vain(item: str) -> None:
    WORLD.did(f"try:{item}")
    raise ApplicationError("still down", type="StillDown")


@action(
    compensate_with=undo_in_vain, undo_options={"retry_policy": RetryPolicy(maximum_attempts=3)}
)
@activity.defn
async def thrice(item: str) -> str:
    return item


@action(compensate_with=undo_in_vain)
@activity.defn
async def for_ever(item: str) -> str:
    return item


@action(
    compensate_with=undo_in_vain,
    undo_options={
        "task_queue": "nobody-undoes-here",
        "schedule_to_close_timeout": timedelta(seconds=1),
    },
)
@activity.defn
async def unreachable(item: str) -> str:
    return item


@activity.defn
async def undo_without_end(item: str) -> None:
    WORLD.did(f"try:{item}")
    await asyncio.Event().wait()


@action(compensate_with=undo_without_end)
@activity.defn
async def without_end(item: str) -> str:
    return item


@action(irreversible=True)
@activity.defn
async def shred(item: str) -> str:
    WORLD.did(f"shred:{item}")
    return item


GIVING_UP: Sequence[Callable[..., Any]] = [
    thrice,
    for_ever,
    unreachable,
    without_end,
    shred,
    undo_in_vain,
    undo_without_end,
]


@workflow.defn
class GivesUp(CompensatedWorkflow):
    """Calls what it is told, charges before and after it, fails."""

    @workflow.run
    async def run(self, called: list[str]) -> None:
        await charge("before")
        for name in called:
            await workflow.execute_activity(name, name, **ONCE)
        await charge("after")
        await explode("Original")


@workflow.defn
class Bounded(GivesUp):
    compensation = CompensationPolicy(total_timeout=timedelta(seconds=60))

    @workflow.run
    async def run(self, called: list[str]) -> None:
        await super().run(called)


@workflow.defn
class Hurried(GivesUp):
    compensation = CompensationPolicy(total_timeout=timedelta(seconds=2))

    @workflow.run
    async def run(self, called: list[str]) -> None:
        await super().run(called)


@workflow.defn
class Stops(GivesUp):
    compensation = CompensationPolicy(on_exhausted="stop")

    @workflow.run
    async def run(self, called: list[str]) -> None:
        await super().run(called)


# -- every trigger with every outcome


@workflow.defn
class Table(CompensatedWorkflow):
    @workflow.run
    async def run(self, trigger: str, items: list[str]) -> str:
        for item in items:
            if item.startswith("irreversible"):
                await workflow.execute_activity(shred, item, **ONCE)
            elif trigger == "uncommitted":
                await reserve(item)
            else:
                await charge(item)
        ended: str = await getattr(self, trigger)()
        return ended

    async def activity(self) -> str:
        await explode("Boom")
        return "unreachable"

    async def error(self) -> str:
        raise ApplicationError("declined", type="Declined")

    async def limit(self) -> str:
        raise LimitExceededError("spent")

    async def timeout(self) -> str:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(3600)
        return "unreachable"

    async def cancel(self) -> str:
        await asyncio.sleep(3600)
        return "unreachable"

    async def uncommitted(self) -> str:
        return "returned"


@workflow.defn
class StopTable(Table):
    compensation = CompensationPolicy(on_exhausted="stop")

    @workflow.run
    async def run(self, trigger: str, items: list[str]) -> str:
        return await super().run(trigger, items)


# -- inputs that are too large


@activity.defn
async def undo_large(ctx: UndoContext) -> None:
    WORLD.did(f"undo large:{len(ctx.args(str)[0])}+{len(ctx.result(str))}")


@action(compensate_with=undo_large, undo_input="context")
@activity.defn
async def large(given: str, returned: int) -> str:
    return "x" * returned


@activity.defn
async def undo_large_result(result: str) -> None:
    WORLD.did(f"undo large result:{len(result)}")


@action(compensate_with=undo_large_result)
@activity.defn
async def large_result(given: str, returned: int) -> str:
    return "x" * returned


LARGE: Sequence[Callable[..., Any]] = [large, large_result, undo_large, undo_large_result]


@workflow.defn
class Large(CompensatedWorkflow):
    @workflow.run
    async def run(self, called: str, given: int, returned: int) -> None:
        await charge("before")
        await workflow.execute_activity(called, args=["x" * given, returned], **ONCE)
        await charge("after")
        await explode("Original")


# -- many entries


@workflow.defn
class Many(CompensatedWorkflow):
    @workflow.run
    async def run(self, count: int) -> None:
        await asyncio.gather(*(charge("broken") for _ in range(count)))
        await explode("Original")
