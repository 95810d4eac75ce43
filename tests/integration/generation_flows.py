"""Workflows of many generations, and of generations that end badly."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import (
    CompensatedWorkflow,
    action,
    compensate,
    idempotency_key,
)
from tests.support.acts import WORLD, Receipt
from tests.support.calls import ONCE, charge, explode, refund, reserve, ship

KEYS: dict[str, list[tuple[str, str, str]]] = {}
"""By workflow id: what was done, under which key, and under which key its action was done."""


def _note(what: str) -> None:
    keys = KEYS.setdefault(activity.info().workflow_id or "", [])
    keys.append((what, idempotency_key(), idempotency_key(role="action")))
    WORLD.did(what)


@activity.defn
async def unmark(item: str) -> None:
    _note(f"unmark:{item}")
    if item in WORLD.broken:
        raise ApplicationError("not yet", type="NotYet", non_retryable=True)


@action(compensate_with=unmark, undo_input="args", on_unknown="undo")
@activity.defn
async def mark(item: str) -> None:
    """Marks; of some items nobody knows whether it did."""
    _note(f"mark:{item}")
    if item.startswith("doubtful"):
        raise ApplicationError("after the effect", type="AfterEffect", non_retryable=True)


async def marked(item: str) -> None:
    try:
        await workflow.execute_activity(mark, item, **ONCE)
    except ActivityError:
        if not item.startswith("doubtful"):
            raise


MARKS: list[Any] = [mark, unmark]


@workflow.defn
class HundredGenerations(CompensatedWorkflow):
    """Opens three actions, then commits one of its own in each generation, then fails."""

    @workflow.run
    async def run(self, left: int, generation: int = 0) -> None:
        if generation == 0:
            await charge("first")
            await marked("second")
            await charge("third")
        item = f"g{generation}"
        await reserve(item)
        if left:
            await ship(item)
            workflow.continue_as_new(args=[left - 1, generation + 1])
        await explode()


@workflow.defn
class ReadsMemo(CompensatedWorkflow):
    """Reads the user's memo in each generation; what is open is committed in the third."""

    @workflow.run
    async def run(self, generation: int = 0, seen: list[str] | None = None) -> Any:
        seen = [*(seen or []), workflow.memo_value("theirs", type_hint=str)]
        if generation == 0:
            await reserve("a")
        if generation == 2:
            await ship("a")
        if generation < 3:
            workflow.continue_as_new(args=[generation + 1, seen])
        return [seen, sorted(workflow.info().raw_memo)]


@workflow.defn
class CarriesDoubt(CompensatedWorkflow):
    """Continues as new twice with an action of which nobody knows, between two others."""

    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation == 0:
            await marked("before")
            await marked("doubtful")
            await marked("after")
        if generation < 2:
            workflow.continue_as_new(generation + 1)
        await explode()


@workflow.defn
class UndoesLater(CompensatedWorkflow):
    """Two actions are open when it continues; the next run undoes one of them by hand."""

    @workflow.run
    async def run(self, receipt: Receipt | None = None) -> None:
        if receipt is None:
            receipt = await charge("by hand")
            await charge("automatic")
            workflow.continue_as_new(receipt)
        await refund(receipt)
        await explode()


@workflow.defn
class RepeatsAnUndoLater(CompensatedWorkflow):
    """Undoes one of two actions by hand, and once more in the run after."""

    @workflow.run
    async def run(self, receipt: Receipt | None = None) -> None:
        if receipt is None:
            receipt = await charge("by hand")
            await charge("automatic")
            await refund(receipt)
            workflow.continue_as_new(receipt)
        await refund(receipt)
        await explode()


@workflow.defn
class CommitsOneLater(CompensatedWorkflow):
    """Three actions are open when it continues; the next run commits those that name it."""

    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation == 0:
            await reserve("a")
            await charge("b")
            await reserve("c")
            workflow.continue_as_new(1)
        await ship("both")
        await explode()


@workflow.defn
class UndoFailsOnce(CompensatedWorkflow):
    """An undo called by hand fails, and is tried again by the end of a later generation."""

    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation == 0:
            await marked("x")
            try:
                await workflow.execute_activity(unmark, "x", **ONCE)
            except ActivityError:
                await workflow.wait_condition(lambda: self.mended)
        if generation < 2:
            workflow.continue_as_new(generation + 1)
        await explode()

    mended = False

    @workflow.signal
    def mend(self) -> None:
        self.mended = True


@workflow.defn
class Backoff(CompensatedWorkflow):
    """Continues once; the run that adopted fails, and its retry comes an hour later."""

    @workflow.run
    async def run(self, generation: int = 0) -> str:
        if generation == 0:
            await charge("g0")
            workflow.continue_as_new(1)
        await charge(f"attempt {workflow.info().attempt}")
        if workflow.info().attempt < 3:
            raise ApplicationError("again", type="Again")
        raise ApplicationError("enough", type="Enough", non_retryable=True)


@workflow.defn
class TimesOutThenFails(CompensatedWorkflow):
    """Continues once; the run that adopted times out at the server, and its retry fails."""

    @workflow.run
    async def run(self, generation: int = 0) -> None:
        if generation == 0:
            await charge("g0")
            workflow.continue_as_new(1)
        if workflow.info().attempt == 1:
            await charge("timed out")
            await workflow.wait_condition(lambda: False)
        await charge("retried")
        raise ApplicationError("enough", type="Enough", non_retryable=True)


@workflow.defn
class BySchedule(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await charge("by schedule")
        await explode()


@workflow.defn(sandboxed=False)
class TooManyUntilFixed(CompensatedWorkflow):
    """Has too much open to continue, until a deploy compensates before it does."""

    @workflow.run
    async def run(self, generation: int = 0) -> str:
        if generation:
            return "went on"
        # Random text, because the record is compressed.
        text = ["".join(workflow.uuid4().hex for _ in range(100)) for _ in range(30)]
        await asyncio.gather(*(charge(each) for each in text))
        if "too many" not in WORLD.broken:
            await compensate()
        workflow.continue_as_new(1)
