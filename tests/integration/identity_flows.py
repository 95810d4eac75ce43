"""Workflows whose keys are looked at."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from agboss_temporal import CompensatedWorkflow
from tests.support.calls import charge, explode, note, reserve, ship


@workflow.defn
class Keys(CompensatedWorkflow):
    """Actions, a committer, calls that nothing names and a local one, then a failure."""

    @workflow.run
    async def run(self) -> list[float]:
        drawn = [workflow.random().random()]
        await reserve("a")
        await note("not named")
        await charge("b")
        await workflow.execute_local_activity(
            "note", "local", start_to_close_timeout=timedelta(seconds=5)
        )
        await ship("a")
        await charge("c")
        drawn.append(workflow.random().random())
        await explode()
        return drawn


@workflow.defn
class Flaky(CompensatedWorkflow):
    """Its first action needs several attempts; then the run waits."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            "flaky",
            "f",
            start_to_close_timeout=timedelta(seconds=5),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=10), maximum_attempts=5
            ),
        )
        await charge("after")
        await workflow.wait_condition(lambda: self.go)
        await charge("later")
        await explode()

    go = False

    @workflow.signal
    def proceed(self) -> None:
        self.go = True


async def draw() -> list[float]:
    """Draw numbers around an action; the timers' lengths, which history keeps, depend on them."""
    found = []
    for _ in range(3):
        found.append(workflow.random().random())
        await charge("x")
        if found[-1] < 0.5:
            await asyncio.sleep(0.001)
    return found


@workflow.defn
class Drawn(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> list[float]:
        return await draw()


@workflow.defn(name="Drawn")
class PlainDrawn:
    """The same without the plugin."""

    @workflow.run
    async def run(self) -> list[float]:
        return await draw()
