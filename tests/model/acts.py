"""The activities of the programs, one action for each kind of contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from agboss_temporal import UndoContext, action
from tests.model.stage import here

LOST_AFTER = timedelta(seconds=1.5)
"""How long an activity may run that is to time out."""

OPTIONS: dict[str, Any] = {
    "no_effect_errors": ["Declined"],
    "undo_options": {
        "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=10)),
        "start_to_close_timeout": timedelta(minutes=5),
    },
}


@dataclass
class Spec:
    """What an activity is to do."""

    label: str
    outcome: str = "ok"
    on_cancel: str = "ignore"
    undo: str = "ok"


@dataclass
class Receipt:
    """What an action returns. ``touched`` is set by workflow code that changes it afterwards."""

    label: str
    undo: str = "ok"
    touched: bool = False


def fail(kind: str) -> ApplicationError:
    return ApplicationError("as the program says", type=kind, non_retryable=True)


async def perform(verb: str, spec: Spec) -> Receipt:
    """Do what a program says of an action or a committer."""
    stage, effect = here(), f"{verb} {spec.label}"
    if spec.outcome.startswith("lost"):
        if spec.outcome == "lost_after":
            stage.did(effect)
        await asyncio.sleep(2 * LOST_AFTER.total_seconds())
        raise fail("Late")
    order = await stage.arrive(effect)
    if order.vanish:
        raise fail("Vanished")
    if order.cancelled and spec.on_cancel != "ignore":
        if spec.on_cancel == "obey_after":
            stage.did(effect)
        activity.heartbeat()
        await asyncio.sleep(20)
        raise fail("NeverTold")
    if spec.outcome in ("ok", "raise_after"):
        stage.did(effect)
    if spec.outcome != "ok":
        raise fail("Declined" if spec.outcome == "declined" else "Broke")
    return Receipt(spec.label, spec.undo)


async def reverse(label: str, behaviour: str, form: str) -> None:
    """Do what a program says of an undo."""
    stage = here()
    order = await stage.arrive(f"undo {label}")
    if order.vanish:
        raise fail("Vanished")
    if behaviour == "flaky" and activity.info().attempt == 1:
        raise ApplicationError("once more", type="Flaky")
    if behaviour != "fails":
        stage.did(f"undo {label} {form}")
    if behaviour.startswith("fails"):
        raise fail("CannotUndo")


@activity.defn
async def undo_result(receipt: Receipt) -> None:
    await reverse(receipt.label, receipt.undo, "touched" if receipt.touched else "result")


@activity.defn
async def undo_args(spec: Spec) -> None:
    await reverse(spec.label, spec.undo, "args")


@activity.defn
async def undo_context(context: UndoContext) -> None:
    [spec] = context.args(Spec)
    if context.has_result:
        assert context.result(Receipt) == Receipt(spec.label, spec.undo)
    form = f"context {context.outcome} {context.reason.trigger}"
    await reverse(spec.label, spec.undo, form)


@activity.defn
async def undo_nothing() -> None:
    _, slash, place = (activity.info().workflow_id or "").partition("/")
    await reverse(f"?{place}{slash}", "ok", "nothing")


@activity.defn
async def ship(spec: Spec) -> Receipt:
    return await perform("commit", spec)


@activity.defn
async def bill(spec: Spec) -> Receipt:
    return await perform("commit", spec)


@activity.defn
async def note(spec: Spec) -> Receipt:
    return await perform("note", spec)


def _action(kind: str, **contract: Any) -> Callable[..., Any]:
    async def act(spec: Spec) -> Receipt:
        return await perform("do", spec)

    act.__qualname__ = act.__name__ = f"do_{kind}"
    return action(**contract, **OPTIONS)(activity.defn(name=f"do_{kind}")(act))


ACTIONS: dict[str, Callable[..., Any]] = {
    "result": _action("result", compensate_with=undo_result),
    "ship": _action("ship", compensate_with=undo_result, committed_by=ship),
    "args": _action("args", compensate_with=undo_args, undo_input="args"),
    "context": _action("context", compensate_with=undo_context, undo_input="context"),
    "nothing": _action("nothing", compensate_with=undo_nothing),
    "unknown": _action("unknown", compensate_with=undo_args, undo_input="args", on_unknown="undo"),
    "unknown_context": _action(
        "unknown_context", compensate_with=undo_context, undo_input="context", on_unknown="undo"
    ),
    "bill": _action(
        "bill",
        compensate_with=undo_args,
        undo_input="args",
        on_unknown="undo",
        committed_by=bill,
    ),
    "final": _action("final", irreversible=True),
}

COMMITTERS: dict[str, Callable[..., Any]] = {"ship": ship, "bill": bill}

ACTIVITIES: list[Callable[..., Any]] = [
    *ACTIONS.values(),
    *COMMITTERS.values(),
    *(undo_result, undo_args, undo_context, undo_nothing, note),
]
