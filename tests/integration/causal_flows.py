"""Workflows that are unwound under ``causal``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, CompensationPolicy, action
from tests.support.acts import WORLD
from tests.support.calls import ONCE, charge, explode

Shape = list[list[str]]
"""Groups of items, one group after another; the items of a group are acted on at once."""


@activity.defn
async def undo_doubtful(item: str) -> None:
    WORLD.did(f"undo:{item}")


@action(compensate_with=undo_doubtful, undo_input="args", on_unknown="undo")
@activity.defn
async def doubtful(item: str) -> None:
    WORLD.did(f"doubtful:{item}")
    raise ApplicationError("after the effect", type="AfterEffect")


@action(irreversible=True)
@activity.defn
async def shred(item: str) -> str:
    WORLD.did(f"shred:{item}")
    return item


ACTS: Sequence[Callable[..., Any]] = [doubtful, undo_doubtful, shred]


async def act(item: str) -> None:
    if item.startswith("doubtful"):
        try:
            await workflow.execute_activity(doubtful, item, **ONCE)
        except ActivityError:
            return
    elif item.startswith("shred"):
        await workflow.execute_activity(shred, item, **ONCE)
    else:
        await charge(item)


@workflow.defn
class Causal(CompensatedWorkflow):
    """Acts on the groups in order, then fails."""

    compensation = CompensationPolicy(order="causal")

    @workflow.run
    async def run(self, shape: Shape) -> None:
        for group in shape:
            await asyncio.gather(*map(act, group))
        await explode("Original")


@workflow.defn
class Narrow(Causal):
    compensation = CompensationPolicy(order="causal", max_parallel=2)

    @workflow.run
    async def run(self, shape: Shape) -> None:
        await super().run(shape)


@workflow.defn
class Stops(Causal):
    compensation = CompensationPolicy(order="causal", on_exhausted="stop")

    @workflow.run
    async def run(self, shape: Shape) -> None:
        await super().run(shape)


@workflow.defn
class Hurried(Causal):
    compensation = CompensationPolicy(
        order="causal", total_timeout=timedelta(seconds=2), max_parallel=2
    )

    @workflow.run
    async def run(self, shape: Shape) -> None:
        await super().run(shape)


@workflow.defn
class Waits(Causal):
    """Waits for a cancel instead of failing."""

    @workflow.run
    async def run(self, shape: Shape) -> None:
        for group in shape:
            await asyncio.gather(*map(act, group))
        await workflow.wait_condition(lambda: False)


@workflow.defn
class Carries(Causal):
    """Acts on one group in each generation."""

    @workflow.run
    async def run(self, shape: Shape) -> None:
        await asyncio.gather(*map(act, shape[0]))
        if len(shape) > 1:
            workflow.continue_as_new(shape[1:])
        await explode("Original")
