"""The orders: activities that act on the world, and a workflow that follows a plan."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPolicy,
    UndoContext,
    action,
    compensate,
    idempotency_key,
)

with workflow.unsafe.imports_passed_through():
    from tests.chaos.plan import Do, Step, plan_of
    from tests.chaos.world import Kind, Request, World

QUICKLY = timedelta(milliseconds=200)

ATTEMPTS = {"book": 1, "pack": 2}
"""Actions that are given up soon, so that a kill leaves their outcome unknown."""

UNDONE_BY = {"take_stock": "put_back", "debit": "credit"}


@dataclass
class Receipt:
    item: str


class Shop:
    """The activities, on one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    @activity.defn
    async def dispatch(self) -> None:
        await self._act("commit", Do("dispatch", "dispatch", 0.1, 0.1))

    @activity.defn
    async def put_back(self, receipt: Receipt) -> None:
        await self._undo(receipt.item)

    @action(compensate_with=put_back, committed_by=dispatch)
    @activity.defn
    async def take_stock(self, do: Do) -> Receipt:
        return await self._act("do", do)

    @activity.defn
    async def credit(self, receipt: Receipt) -> None:
        await self._undo(receipt.item)

    @action(compensate_with=credit, no_effect_errors=("Refused",))
    @activity.defn
    async def debit(self, do: Do) -> Receipt:
        return await self._act("do", do)

    @activity.defn
    async def unbook(self, do: Do) -> None:
        await self._undo(do.item)

    @action(compensate_with=unbook, undo_input="args", on_unknown="undo")
    @activity.defn
    async def book(self, do: Do) -> Receipt:
        return await self._act("do", do)

    @activity.defn
    async def unpack(self, context: UndoContext) -> None:
        (do,) = context.args(Do)
        if context.has_result:
            assert context.result(Receipt) == Receipt(do.item)
        await self._undo(do.item)

    @action(compensate_with=unpack, undo_input="context", on_unknown="undo")
    @activity.defn
    async def pack(self, do: Do) -> Receipt:
        return await self._act("do", do)

    @activity.defn
    async def explode(self) -> None:
        await asyncio.sleep(0.1)
        raise ApplicationError("it went wrong", type="Boom", non_retryable=True)

    def activities(self) -> list[Any]:
        """List them for a worker."""
        forward = [self.take_stock, self.debit, self.book, self.pack, self.dispatch, self.explode]
        return [*forward, self.put_back, self.credit, self.unbook, self.unpack]

    async def _act(self, kind: Kind, do: Do) -> Receipt:
        first = activity.info().attempt == 1
        request = self._begin(kind)
        await asyncio.sleep(do.before)
        if do.ends == "refused":
            raise ApplicationError("no", type="Refused", non_retryable=True)
        if first and do.flaky == "before":
            raise ConnectionError("lost on the way there")
        self._world.take_effect(request, do.item)
        await asyncio.sleep(do.after)
        if first and do.flaky == "after":
            raise ConnectionError("lost on the way back")
        if do.ends == "broken":
            raise ApplicationError("it broke afterwards", type="Broken", non_retryable=True)
        return Receipt(do.item)

    async def _undo(self, item: str) -> None:
        request = self._begin("undo")
        random = Random(request.key)
        await asyncio.sleep(random.uniform(0, 0.15))
        self._world.take_effect(request, item)
        await asyncio.sleep(random.uniform(0, 0.15))
        if activity.info().attempt == 1 and random.random() < 0.15:
            raise ConnectionError("lost on the way back")

    def _begin(self, kind: Kind) -> Request:
        info = activity.info()
        request = Request(
            order_id=info.workflow_id or "",
            activity_id=info.activity_id,
            name=info.activity_type,
            kind=kind,
            key=idempotency_key(),
            reverses=idempotency_key(role="action") if kind == "undo" else None,
        )
        self._world.note_attempt(request, info.attempt)
        return request


@workflow.defn
class ChaosOrder(CompensatedWorkflow):
    """Does what the plan of its seed says."""

    compensation = CompensationPolicy(
        undo_options={
            "start_to_close_timeout": timedelta(seconds=3),
            "retry_policy": RetryPolicy(initial_interval=QUICKLY, maximum_interval=QUICKLY * 5),
        }
    )

    @workflow.run
    async def run(self, seed: int) -> str:
        for step in plan_of(seed).steps:
            await getattr(self, step.kind)(step)
        return "done"

    async def do(self, do: Do) -> Receipt:
        receipt: Receipt = await self.call(do.action, do, result_type=Receipt)
        return receipt

    async def call(self, name: str, *args: Any, **options: Any) -> Any:
        retries = RetryPolicy(
            initial_interval=QUICKLY,
            maximum_interval=QUICKLY * 5,
            maximum_attempts=ATTEMPTS.get(name, 0),
        )
        return await workflow.execute_activity(
            name,
            args=args,
            start_to_close_timeout=timedelta(seconds=2.5),
            retry_policy=retries,
            **options,
        )

    async def one(self, step: Step) -> None:
        await self.do(step.calls[0])

    async def loop(self, step: Step) -> None:
        for each in step.calls:
            await self.do(each)

    async def gather(self, step: Step) -> None:
        await asyncio.gather(*(self.do(each) for each in step.calls))

    async def group(self, step: Step) -> None:
        async with asyncio.TaskGroup() as group:
            for each in step.calls:
                group.create_task(self.do(each))

    async def branches(self, step: Step) -> None:
        halves = (step.calls[::2], step.calls[1::2])
        await asyncio.gather(*(self.loop(Step("loop", half)) for half in halves))

    async def pause(self, step: Step) -> None:
        await asyncio.sleep(step.seconds)

    async def tolerate(self, step: Step) -> None:
        try:
            await self.do(step.calls[0])
        except ActivityError:
            workflow.logger.info("never mind")

    async def regret(self, step: Step) -> None:
        receipt = await self.do(step.calls[0])
        await self.call(
            {"take_stock": "put_back", "debit": "credit"}[step.calls[0].action], receipt
        )

    async def commit(self, step: Step) -> None:
        await self.call("dispatch")

    async def give_back(self, step: Step) -> None:
        await compensate()

    async def boom(self, step: Step) -> None:
        await self.call("explode")

    async def boom_beside(self, step: Step) -> None:
        await asyncio.gather(*(self.do(each) for each in step.calls), self.call("explode"))

    async def boom_in_group(self, step: Step) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.call("explode"))
            for each in step.calls:
                group.create_task(self.do(each))
