"""Undos whose attempts end in other ways than to return or to raise."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy

from agboss_temporal import CompensatedWorkflow, action
from tests.support.calls import explode

TOKENS: asyncio.Queue[bytes] = asyncio.Queue()
"""Those of undos that complete elsewhere."""

TIMEOUT = timedelta(seconds=20)


@activity.defn
async def undo_elsewhere() -> None:
    TOKENS.put_nowait(activity.info().task_token)
    activity.raise_complete_async()


@activity.defn
async def undo_that_hangs() -> None:
    await asyncio.Event().wait()


@activity.defn
async def undo_that_is_late() -> None:
    while not activity.is_cancelled():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return


_TWICE = {
    "start_to_close_timeout": timedelta(seconds=1),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=1), maximum_attempts=2),
}


@action(compensate_with=undo_elsewhere, undo_input="nothing")
@activity.defn
async def act_elsewhere() -> None: ...


@action(compensate_with=undo_that_hangs, undo_input="nothing", undo_options=_TWICE)
@activity.defn
async def act_hanging() -> None: ...


@action(compensate_with=undo_that_is_late, undo_input="nothing", undo_options=_TWICE)
@activity.defn
async def act_late() -> None: ...


ACTIONS = {each.__name__: each for each in (act_elsewhere, act_hanging, act_late)}


@workflow.defn
class Attempted(CompensatedWorkflow):
    @workflow.run
    async def run(self, name: str) -> None:
        await workflow.execute_activity(name, start_to_close_timeout=TIMEOUT)
        await explode()
