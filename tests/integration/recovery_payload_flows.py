"""Workflows with results and arguments of every kind, that are stopped before they end."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from agboss_temporal import CompensatedWorkflow
from tests.integration.limit_flows import grow
from tests.integration.undo_input_result_flows import RESULTS
from tests.integration.undo_input_seen import Order
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


@workflow.defn
class Grew(CompensatedWorkflow):
    """Has large results, then waits."""

    @workflow.run
    async def run(self, sizes: list[int]) -> None:
        for size in sizes:
            await workflow.execute_activity(grow, size, **ONCE)
        await workflow.wait_condition(lambda: False)
