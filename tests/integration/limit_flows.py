"""Workflows whose unwind does not fit into their own history."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationFailedError,
    CompensationPolicy,
    UndoContext,
    action,
    compensate,
    idempotency_key,
)
from tests.integration.causal_flows import ACTS, Causal, act
from tests.support.acts import WORLD
from tests.support.calls import ONCE, charge, explode


@activity.defn
async def let_go(ctx: UndoContext) -> None:
    WORLD.did(f"let go:{ctx.args(str)[0]}:{ctx.result(str)}:{ctx.reason.trigger}")
    WORLD.did(f"because:{ctx.reason.error_type}:{ctx.reason.message}")
    WORLD.did(f"action key:{idempotency_key(role='action')}")


@action(compensate_with=let_go, undo_input="context")
@activity.defn
async def keep(item: str) -> str:
    WORLD.did(f"keep:{item}")
    WORLD.did(f"key:{idempotency_key()}")
    return f"{item}!"


@activity.defn
async def shrink(text: str) -> None:
    WORLD.did(f"shrink:{len(text)}")


@action(compensate_with=shrink)
@activity.defn
async def grow(size: int) -> str:
    """Return a text of a size that cannot be compressed much."""
    return base64.b64encode(os.urandom(size * 3 // 4)).decode()


@activity.defn
async def shrink_bytes(data: bytes) -> None:
    WORLD.did(f"shrink:{len(data)}")


@action(compensate_with=shrink_bytes)
@activity.defn
async def grow_bytes(size: int) -> bytes:
    return os.urandom(size)


@activity.defn
async def undo_elsewhere(item: str) -> None:
    WORLD.did(f"elsewhere:{activity.info().task_queue}")


@action(
    compensate_with=undo_elsewhere,
    undo_options={"task_queue": "undos-of-limit", "start_to_close_timeout": timedelta(seconds=7)},
)
@activity.defn
async def act_elsewhere(item: str) -> str:
    return item


EVERYTHING: Sequence[Callable[..., Any]] = [
    *ACTS,
    *(keep, let_go, grow, shrink, grow_bytes, shrink_bytes, act_elsewhere),
]


@workflow.defn
class Many(CompensatedWorkflow):
    """Acts on items one after another; then ends as it is told."""

    @workflow.run
    async def run(self, items: list[str], how: str = "fail") -> None:
        for item in items:
            await act(item)
        if how == "wait":
            await workflow.wait_condition(lambda: False)
        await explode("Original")

    @workflow.signal
    def nothing(self) -> None:
        """Make an event."""


@workflow.defn
class Stops(Many):
    compensation = CompensationPolicy(on_exhausted="stop")

    @workflow.run
    async def run(self, items: list[str], how: str = "fail") -> None:
        await super().run(items, how)


@workflow.defn
class Hurried(Many):
    compensation = CompensationPolicy(total_timeout=timedelta(seconds=2))

    @workflow.run
    async def run(self, items: list[str], how: str = "fail") -> None:
        await super().run(items, how)


@workflow.defn
class Keeps(CompensatedWorkflow):
    """Its undos are given a context and tell what they know."""

    @workflow.run
    async def run(self, items: list[str]) -> None:
        for item in items:
            await workflow.execute_activity(keep, item, **ONCE)
        await explode("Original")


@workflow.defn
class Calls(CompensatedWorkflow):
    """Calls activities by name, each with a size or an item, then fails."""

    @workflow.run
    async def run(self, calls: list[tuple[str, Any]]) -> None:
        for name, given in calls:
            await workflow.execute_activity(name, given, **ONCE)
        await explode("Original")


@workflow.defn
class GoesOn(CompensatedWorkflow):
    """Compensates by hand and goes on."""

    @workflow.run
    async def run(self, items: list[str]) -> str:
        for item in items:
            await charge(item)
        try:
            await compensate()
        except CompensationFailedError as err:
            await charge("after")
            return err.message
        await charge("after")
        return "compensated"


@workflow.defn
class Signalled(Causal):
    """Takes signals while it is unwound."""

    @workflow.run
    async def run(self, shape: list[list[str]]) -> None:
        await super().run(shape)

    @workflow.signal
    def nothing(self) -> None:
        """Make an event."""
