"""Workflows with results and arguments of every kind, that are stopped before they end."""

from __future__ import annotations

import base64
import os
from typing import Any

from temporalio import activity, workflow

from agboss_temporal import CompensatedWorkflow, action
from tests.integration.undo_input_result_flows import RESULTS
from tests.integration.undo_input_seen import Order
from tests.support.acts import WORLD
from tests.support.calls import ONCE


@workflow.defn
class Gave(CompensatedWorkflow):
    """Has results, then waits."""

    @workflow.run
    async def run(self, cases: list[str]) -> None:
        for case in cases:
            give, _ = RESULTS[case]
            called: Any = give
            await workflow.execute_activity(called, **ONCE)
        await workflow.wait_condition(lambda: False)


@workflow.defn
class Took(CompensatedWorkflow):
    """Calls actions with two arguments, then waits."""

    @workflow.run
    async def run(self, called: str, private: str) -> None:
        order = Order("book", [private])
        await workflow.execute_activity(called, args=[order, "by post"], **ONCE)
        await workflow.wait_condition(lambda: False)


@activity.defn
async def shrink(text: str) -> None:
    WORLD.did(f"shrink:{len(text)}")


@action(compensate_with=shrink)
@activity.defn
async def grow(size: int) -> str:
    """Return a text of a size that cannot be compressed much."""
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


@workflow.defn
class Grew(CompensatedWorkflow):
    """Has large results, then waits."""

    @workflow.run
    async def run(self, sizes: list[int]) -> None:
        for size in sizes:
            await workflow.execute_activity(grow, size, **ONCE)
        await workflow.wait_condition(lambda: False)
