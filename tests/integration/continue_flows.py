"""Workflows that continue as new with open actions."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, compensate
from tests.support.calls import charge, explode, reserve, ship


@workflow.defn
class Generations(CompensatedWorkflow):
    """Acts once in each generation; the last one ends as it is told."""

    @workflow.run
    async def run(self, how: str, left: int, generation: int = 0) -> str:
        await charge(f"g{generation}")
        if left:
            memo: dict[str, Any] | None = {"theirs": "new"} if how == "own memo" else None
            workflow.continue_as_new(args=[how, left - 1, generation + 1], memo=memo)
        if how == "return":
            return "done"
        if how == "wait":
            await workflow.wait_condition(lambda: False)
        await explode()
        return "unreachable"


@workflow.defn
class CommitsLater(CompensatedWorkflow):
    @workflow.run
    async def run(self, generation: int = 0) -> list[str]:
        if generation == 0:
            await reserve("a")
            workflow.continue_as_new(1)
        if generation == 1:
            await ship("a")
            workflow.continue_as_new(2)
        return sorted(name for name, each in workflow.info().raw_memo.items() if each.data)


@workflow.defn
class StillRuns(CompensatedWorkflow):
    """An action runs when the workflow continues as new."""

    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation == 0:
            self.task = asyncio.create_task(charge("slow", workflow.info().workflow_id))
            await charge("before")
            workflow.continue_as_new(1)
        await explode()


@workflow.defn
class Retried(CompensatedWorkflow):
    """Continues once; then each attempt fails, and the server retries it."""

    @workflow.run
    async def run(self, generation: int = 0) -> str:
        if generation == 0:
            await charge("g0")
            workflow.continue_as_new(1)
        if workflow.info().attempt < 3:
            raise ApplicationError("again", type="Again")
        return "done"


@workflow.defn
class TooMany(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        # Random text, because the record is compressed.
        text = ["".join(workflow.uuid4().hex for _ in range(100)) for _ in range(30)]
        await asyncio.gather(*(charge(each) for each in text))
        workflow.continue_as_new()


@workflow.defn(failure_exception_types=[Exception])
class TooManyFails(CompensatedWorkflow):
    """Too many to carry, in a workflow that fails for every exception."""

    @workflow.run
    async def run(self) -> None:
        text = ["".join(workflow.uuid4().hex for _ in range(100)) for _ in range(30)]
        await asyncio.gather(*(charge(each) for each in text))
        workflow.continue_as_new()


@workflow.defn
class BusyHandler(CompensatedWorkflow):
    """Continues as new while a handler acts and another one wants to compensate."""

    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation:
            await explode()
        await charge("main")
        await workflow.wait_condition(lambda: self.go)
        workflow.continue_as_new(1)

    @workflow.signal
    async def act(self) -> None:
        await charge("handler", workflow.info().workflow_id)
        await charge("refused")

    @workflow.signal
    async def undo(self) -> None:
        await compensate()

    @workflow.signal
    def renew(self) -> None:
        self.go = True


@workflow.defn
class BySignal(CompensatedWorkflow):
    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation:
            await explode()
        await charge("main")
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    async def renew(self) -> None:
        await charge("handler")
        workflow.continue_as_new(1)
