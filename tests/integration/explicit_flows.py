"""Workflows that undo by hand, and the ways in which they name what they undo."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, CompensationReport, compensate, report
from tests.support import calls
from tests.support.acts import Receipt
from tests.support.calls import charge, explode, refund, release, reserve


@workflow.defn
class ByHand(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> Any:
        return await getattr(self, how)()

    async def identity(self) -> None:
        first = await charge("same")
        second = await charge("same")
        await refund(first)
        del second
        raise ApplicationError("end")

    async def equal_payload(self) -> None:
        await charge("one")
        await charge("two")
        await refund(Receipt("one"))
        raise ApplicationError("end")

    async def only_open(self) -> None:
        await charge("one")
        await refund(Receipt("a stranger"))
        raise ApplicationError("end")

    async def ambiguous(self) -> None:
        await charge("one")
        await charge("two")
        await refund(Receipt("a stranger"))
        raise ApplicationError("end")

    async def twice(self) -> None:
        receipt = await charge("one")
        await refund(receipt)
        await refund(receipt)
        raise ApplicationError("end")

    async def fails(self) -> None:
        await charge("before")
        receipt = await reserve("broken-once")
        try:
            await release(receipt)
        except ActivityError:
            await calls.note("the undo failed")
        raise ApplicationError("end")

    async def before_any(self) -> None:
        await refund(Receipt("never charged"))
        raise ApplicationError("end")

    async def compensate_twice(self) -> CompensationReport:
        await reserve("a")
        await charge("b")
        await compensate()
        await compensate()
        return report()

    async def compensate_one(self) -> list[str]:
        await reserve("a")
        await charge("b")
        await compensate("reserve")
        seen = [f"{e.action}:{e.verdict}" for e in report().entries]
        await charge("c")
        await explode()
        return seen

    async def compensate_then_raise(self) -> None:
        await reserve("a")
        await charge("b")
        try:
            await explode()
        except ActivityError:
            await compensate()
            raise

    async def compensate_then_go_on(self) -> str:
        await charge("first try")
        await compensate()
        await charge("second try")
        return "done"

    async def compensate_fails(self) -> str:
        await charge("before")
        await reserve("broken")
        try:
            await compensate()
        except ApplicationError as err:
            return str(err.type)
        return "nothing raised"

    async def compensate_fails_and_ends(self) -> None:
        await charge("before")
        await reserve("broken")
        try:
            await compensate()
        except ApplicationError:
            raise ApplicationError("another error") from None

    async def compensate_settles(self) -> None:
        await charge("before")
        task = asyncio.create_task(charge("slow", workflow.info().workflow_id))
        await asyncio.sleep(0)
        try:
            await explode()
        except ActivityError:
            await compensate()
        await workflow.wait([task])

    async def not_an_activity(self) -> str:
        try:
            await compensate(len)
        except TypeError as err:
            return str(err)
        return "accepted"
