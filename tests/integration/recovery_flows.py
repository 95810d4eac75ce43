"""A workflow of the order's shape, whose world knows what was taken and not given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, UndoContext, action, idempotency_key
from tests.support.acts import WORLD
from tests.support.calls import charge, note

PATIENCE: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=30)}


@dataclass
class Shop:
    """What was taken, by the key under which it was; and how often each key was served."""

    held: dict[str, str] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)

    def take(self, what: str) -> None:
        key = idempotency_key()
        if self.served.setdefault(key, 0) == 0:
            self.held[key] = what
        self.served[key] += 1

    def give_back(self) -> None:
        key = idempotency_key()
        if self.served.setdefault(key, 0) == 0:
            self.held.pop(idempotency_key(role="action"), None)
        self.served[key] += 1

    def of(self, workflow_id: str) -> list[str]:
        return sorted(what for what in self.held.values() if what.startswith(f"{workflow_id}:"))


SHOP = Shop()


async def _pause(what: str) -> None:
    """Hang here if the test wants that; end without going on if it then wants that, too."""
    place = f"{_run()}:{what}"
    if place in WORLD.gates:
        WORLD.did(f"at:{what}")
        await WORLD.gate(place).wait()
        if place in WORLD.broken:
            WORLD.did(f"crashed:{what}")
            raise ApplicationError("crashed", non_retryable=True)


def _run() -> str:
    """The id of the workflow that it is about, also for the undos of a recovery."""
    info = activity.info()
    whole = info.workflow_id or ""
    return whole.removeprefix("agboss-recovery/").split("/")[0]


@activity.defn
async def put_back(context: UndoContext) -> None:
    what = context.args(str)[0]
    await _pause(f"before undo {what}")
    SHOP.give_back()
    WORLD.did(f"put_back:{what}:{context.outcome}")
    await _pause(f"after undo {what}")


@activity.defn
async def send(what: str) -> str:
    await _pause(f"before {what}")
    if what == "nowhere":
        raise ApplicationError("no such place", type="Nowhere", non_retryable=True)
    WORLD.did(f"send:{what}")
    await _pause(f"after {what}")
    return what


@action(compensate_with=put_back, undo_input="context", on_unknown="undo", committed_by=send)
@activity.defn
async def take(what: str) -> str:
    await _pause(f"before {what}")
    SHOP.take(f"{_run()}:{what}")
    WORLD.did(f"take:{what}")
    await _pause(f"after {what}")
    return what


@workflow.defn
class Order(CompensatedWorkflow):
    """Takes stock and money, then sends the parcel."""

    @workflow.run
    async def run(self, where: str = "home") -> str:
        await workflow.execute_activity(take, "stock", **PATIENCE)
        await workflow.execute_activity(take, "money", **PATIENCE)
        return await workflow.execute_activity(send, where, **PATIENCE)


@workflow.defn
class Steps(CompensatedWorkflow):
    """Charges for each item, then waits for ever."""

    @workflow.run
    async def run(self, items: list[str]) -> None:
        for item in items:
            await charge(item)
        await workflow.wait_condition(lambda: False)


@workflow.defn
class Many(CompensatedWorkflow):
    """Charges for all items at once, then waits for ever."""

    @workflow.run
    async def run(self, items: list[str]) -> None:
        await asyncio.gather(*map(charge, items))
        await note("done")
        await workflow.wait_condition(lambda: False)


ACTS: Sequence[Callable[..., Any]] = [take, put_back, send]
