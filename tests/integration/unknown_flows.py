"""Actions that may have taken effect and have no result, and workflows that call them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, UndoContext, action, idempotency_key
from tests.support.acts import WORLD, Receipt
from tests.support.calls import ONCE, charge, explode

NOBODY = "nobody-is-here"
"""A queue without a worker."""

TOO_LARGE = 2 * 1024 * 1024 + 1

CONTEXTS: dict[str, list[UndoContext]] = {}
"""The contexts that undos were given, by workflow id."""


class Refused(Exception):
    """Proves that nothing was done."""


async def act(item: str, how: str) -> str:
    """Have the effect, then end without a result in one of many ways."""
    if how == "refused":
        raise Refused("sold out")
    if how == "declined":
        raise ApplicationError("no", type="Declined")
    WORLD.did(f"act:{item}")
    if how == "raise":
        raise ApplicationError("after the effect", type="AfterEffect")
    if how == "large":
        return "x" * TOO_LARGE
    if how == "stubborn":
        await _past_the_cancel(item)
        raise ApplicationError("after the effect", type="AfterEffect")
    if how == "obedient":
        await _beating()
    if how in ("hang", "abandoned"):
        await asyncio.Event().wait()
    return item


async def _beating() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.02)


async def _past_the_cancel(item: str) -> None:
    try:
        await _beating()
    except asyncio.CancelledError:
        await asyncio.sleep(0.2)
        WORLD.did(f"late:{item}")


def undid(item: str) -> None:
    WORLD.did(f"undo:{item}")


@activity.defn
async def undo_result(item: str) -> None:
    undid(item)


@action(compensate_with=undo_result, no_effect_errors=[Refused, "Declined"])
@activity.defn
async def act_report(item: str, how: str) -> str:
    return await act(item, how)


@activity.defn
async def undo_args(item: str, how: str) -> None:
    undid(item)


@action(
    compensate_with=undo_args,
    undo_input="args",
    on_unknown="undo",
    no_effect_errors=[Refused, "Declined"],
)
@activity.defn
async def act_args(item: str, how: str) -> str:
    return await act(item, how)


@activity.defn
async def undo_context(ctx: UndoContext) -> None:
    CONTEXTS.setdefault(activity.info().workflow_id or "", []).append(ctx)
    assert ctx.result(str) in (None, ctx.args(str, str)[0])
    undid(ctx.args(str, str)[0])


@action(
    compensate_with=undo_context,
    undo_input="context",
    on_unknown="undo",
    no_effect_errors=[Refused, "Declined"],
)
@activity.defn
async def act_context(item: str, how: str) -> str:
    return await act(item, how)


@activity.defn
async def undo_nothing() -> None:
    undid("odd")


@action(
    compensate_with=undo_nothing,
    undo_input="nothing",
    on_unknown="undo",
    no_effect_errors=[Refused, "Declined"],
)
@activity.defn
async def act_nothing(item: str, how: str) -> str:
    return await act(item, how)


UNDONE_WHEN_UNKNOWN = ("act_args", "act_context", "act_nothing")

ACTS: Sequence[Callable[..., Any]] = [
    act_report,
    act_args,
    act_context,
    act_nothing,
    undo_result,
    undo_args,
    undo_context,
    undo_nothing,
]


def _seconds(**timeouts: float) -> dict[str, Any]:
    return {f"{name}_timeout": timedelta(seconds=value) for name, value in timeouts.items()}


@dataclass(frozen=True)
class Case:
    """How an action comes to have no result."""

    how: str
    kind: str | None
    options: Mapping[str, Any]
    acted: bool = True


CASES: Mapping[str, Case] = {
    "raised": Case("raise", "raised", ONCE),
    "lost_result": Case("large", "lost_result", ONCE),
    "start_to_close": Case("hang", "timed_out", {**ONCE, **_seconds(start_to_close=0.3)}),
    "heartbeat": Case("hang", "timed_out", {**ONCE, **_seconds(heartbeat=0.3)}),
    "schedule_to_close": Case(
        "hang", "timed_out", _seconds(schedule_to_close=0.4, start_to_close=30)
    ),
    "never_started_retried": Case(
        "",
        "timed_out",
        {**_seconds(start_to_close=30, schedule_to_start=0.3), "task_queue": NOBODY},
        acted=False,
    ),
    "never_started_once": Case(
        "",
        None,
        {**ONCE, **_seconds(schedule_to_start=0.3), "task_queue": NOBODY},
        acted=False,
    ),
    "refused": Case("refused", None, ONCE, acted=False),
    "declined": Case("declined", None, ONCE, acted=False),
}


@workflow.defn
class Unknown(CompensatedWorkflow):
    """One action between two others has no result; the code goes on, then the run fails."""

    @workflow.run
    async def run(self, called: str, case: str, fails: bool) -> str:
        await charge("before")
        failure = "none"
        try:
            await workflow.execute_activity(
                called, args=["odd", CASES[case].how], **CASES[case].options
            )
        except ActivityError as err:
            failure = _kind_of(err)
        await charge("after")
        if fails:
            raise ApplicationError(failure, type="Original")
        return failure


def _kind_of(error: ActivityError) -> str:
    cause: Any = error.cause
    kind = getattr(cause, "type", None)
    return str(getattr(kind, "name", kind) or type(cause).__name__)


@workflow.defn
class Cancelled(CompensatedWorkflow):
    """Is cancelled while an action runs."""

    @workflow.run
    async def run(self, called: str, how: str) -> None:
        await charge("before")
        kinds = workflow.ActivityCancellationType
        await workflow.execute_activity(
            called,
            args=["odd", how],
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=5),
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=kinds.ABANDON if how == "abandoned" else kinds.TRY_CANCEL,
        )


@workflow.defn
class Several(CompensatedWorkflow):
    """Two actions without a result settle in the opposite of the order of their start."""

    @workflow.run
    async def run(self) -> None:
        await charge("first")
        slow = {**ONCE, **_seconds(start_to_close=0.4)}
        await asyncio.gather(
            workflow.execute_activity(act_args, args=["older", "hang"], **slow),
            workflow.execute_activity(act_args, args=["newer", "raise"], **ONCE),
            return_exceptions=True,
        )
        await workflow.execute_activity(act_args, args=["fine", ""], **ONCE)
        await charge("last")
        await explode("Original")


# -- committers


@activity.defn
async def close_account(name: str) -> None:
    WORLD.did(f"close:{name}")


@activity.defn
async def confirm(name: str) -> None:
    WORLD.did(f"confirm:{name}")
    raise ApplicationError("after the effect", type="AfterEffect", non_retryable=True)


@action(compensate_with=close_account, committed_by=confirm)
@activity.defn
async def open_account(name: str) -> str:
    WORLD.did(f"open:{name}")
    return name


@workflow.defn
class CommitterInDoubt(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(open_account, "x", **ONCE)
        await workflow.execute_activity(confirm, "x", **ONCE)


# -- keys

KEYS: dict[str, list[tuple[str, str]]] = {}
"""The idempotency keys of a run's actions, as seen by the actions and by their undos."""


def _noted(what: str, key: str) -> int:
    found = KEYS.setdefault(activity.info().workflow_id or "", [])
    found.append((what, key))
    return activity.info().attempt


@activity.defn
async def undo_keyed(ctx: UndoContext) -> None:
    attempt = _noted(f"undo of {ctx.args(str, bool)[0]}", idempotency_key(role="action"))
    assert idempotency_key() != idempotency_key(role="action")
    if attempt < 2:
        raise ApplicationError("not yet")


@action(
    compensate_with=undo_keyed,
    undo_input="context",
    undo_options={"retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=10))},
    on_unknown="undo",
)
@activity.defn
async def keyed(item: str, returns: bool) -> None:
    attempt = _noted(item, idempotency_key())
    if attempt < 2 or not returns:
        raise ApplicationError("after the effect")


@workflow.defn
class Keyed(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        options: dict[str, Any] = {
            **_seconds(start_to_close=30),
            "retry_policy": RetryPolicy(
                initial_interval=timedelta(milliseconds=10), maximum_attempts=2
            ),
        }
        await workflow.execute_activity(keyed, args=["known", True], **options)
        await workflow.execute_activity(keyed, args=["unknown", False], **options)


# -- results that cannot be decoded

DEPLOYED: dict[str, type] = {"parcel": Receipt}
"""What the workflow's code takes the result of an action to be; a deploy mends it."""


@workflow.defn
class CannotDecode(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> str:
        await charge("before")
        parcel = await workflow.execute_activity(
            "charge", "parcel", result_type=DEPLOYED["parcel"], **ONCE
        )
        return type(parcel).__name__
