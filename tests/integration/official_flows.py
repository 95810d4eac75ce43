"""The five cases in which the undo that people write by hand fails, by hand and declared.

``ByHand`` is the pattern of Temporal's own Python material: a list of undos, run newest first in an
``except Exception``. ``Declared`` is the same workflow without a line of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from temporalio import workflow

from agboss_temporal import CompensatedWorkflow
from tests.support.calls import charge, explode, refund, release, reserve

Undo = Callable[[], Awaitable[None]]


async def forward(case: str, opened: Callable[[Undo], None]) -> None:
    """Reserve and charge, then get into trouble."""
    reservation = await reserve("broken" if case == "undo" else "stock")
    opened(lambda: release(reservation))
    payment = await charge("card")
    opened(lambda: refund(payment))
    if case == "timer":
        await asyncio.sleep(3600)
    if case == "wait":
        await workflow.wait_condition(lambda: False)
    if case == "activity":
        late = await charge("late", workflow.info().workflow_id)
        opened(lambda: refund(late))
        await asyncio.sleep(3600)
    if case == "group":
        async with asyncio.TaskGroup() as group:
            group.create_task(charge("beside"))
            group.create_task(explode())
    await explode()


@workflow.defn
class ByHand:
    @workflow.run
    async def run(self, case: str) -> None:
        undos: list[Undo] = []
        try:
            await forward(case, undos.append)
        except Exception:
            for undo in reversed(undos):
                await undo()
            raise


@workflow.defn
class Declared(CompensatedWorkflow):
    @workflow.run
    async def run(self, case: str) -> None:
        await forward(case, lambda undo: None)
