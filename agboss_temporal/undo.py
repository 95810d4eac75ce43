"""Running one undo: what it is given, what bounds it, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.api.common.v1 import Payloads
from temporalio.common import Priority, RawValue
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, FailureError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from agboss_temporal.core.entry import Entry, Step
from agboss_temporal.core.plan import Unwind
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo_context import UndoContext, UndoReason
from agboss_temporal.undo_options import merged

MAX_SUMMARY_BYTES: Final = 200


@dataclass(frozen=True)
class Why:
    """What starts an unwind: an error of this run, or what another run told of its own."""

    trigger: str
    error: BaseException | None = None
    told: UndoReason | None = None

    @property
    def cause(self) -> str | None:
        """Type of the error, as clients see it."""
        if self.told is not None:
            return self.told.error_type
        return None if self.error is None else error_type(self.error)

    @property
    def reason(self) -> UndoReason:
        """What an undo is told of it."""
        if self.told is not None:
            return self.told
        if self.error is None:
            return UndoReason(self.trigger)
        raised = _raised(self.error)
        message = raised.message if isinstance(raised, FailureError) else str(raised)
        return UndoReason(self.trigger, self.cause, message)


def error_type(error: BaseException) -> str:
    """Return the type of an error as clients see it: what a call raised, unwrapped."""
    raised = _raised(error)
    if isinstance(raised, ApplicationError) and raised.type:
        return raised.type
    return type(raised).__name__


def _raised(error: BaseException) -> BaseException:
    while isinstance(error, (ActivityError, ChildWorkflowError)) and error.cause is not None:
        error = error.cause
    return error


async def undo(
    run: Run,
    record: Unwind,
    entry: Entry,
    why: Why,
    policy: CompensationPolicy,
    left: timedelta | None,
    summary: str,
) -> str | None:
    """Run one undo.

    Returns:
        ``None`` when it is done, else why it is given up.
    """
    assert entry.contract.undo is not None
    args = undo_input(entry, why)
    run.ledger.move(entry, Step.UNDO)
    size = _size_of_context(entry, args)
    if size > run.payload_limit:
        return f"its input of {size} bytes is over the limit of {run.payload_limit}"
    run.issuing = (entry, record)
    try:
        with run.observer.calling_undo(entry):
            handle = workflow.start_activity(
                entry.contract.undo,
                args=args,
                result_type=RawValue,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=summary.encode()[:MAX_SUMMARY_BYTES].decode(errors="ignore"),
                **undo_call_options(entry, policy, left),
            )
    finally:
        run.issuing = None
    try:
        await handle
    except ActivityError as err:
        return _given_up(err)
    return None


def undo_input(entry: Entry, why: Why) -> list[Any]:
    """Return what an undo is given: recorded payloads, passed through as they are."""
    form = entry.contract.undo_input
    if form == "nothing":
        return []
    if form == "args":
        return [RawValue(payload) for payload in entry.args]
    if form == "result":
        return [None if entry.raw is None else RawValue(entry.raw)]
    context = UndoContext(
        key=entry.key,
        action=entry.contract.action,
        outcome="completed" if entry.doubt is None else "unknown",
        reason=why.reason,
        args=entry.args,
        result=entry.raw,
    )
    return [RawValue(workflow.payload_converter().to_payload(context))]


def payload_size(entry: Entry) -> int:
    """Count the bytes of what was recorded for an entry."""
    raw = 0 if entry.raw is None else entry.raw.ByteSize()
    return int(raw + sum(arg.ByteSize() for arg in entry.args))


def _size_of_context(entry: Entry, args: list[Any]) -> int:
    """Measure a context as the server does; results and arguments have passed there before."""
    if entry.contract.undo_input != "context":
        return 0
    return Payloads(payloads=[arg.payload for arg in args]).ByteSize()


def undo_call_options(
    entry: Entry, policy: CompensationPolicy, left: timedelta | None
) -> Mapping[str, Any]:
    """Merge the options of an undo's call: contract over policy over defaults.

    Args:
        entry: The entry; its action's queue and priority are the undo's, unless options say
            otherwise.
        policy: The policy in force.
        left: How much of the unwind's total timeout is left.
    """
    options = merged(
        {"task_queue": entry.task_queue, "priority": entry.priority or Priority.default},
        policy.undo_options,
        entry.contract.undo_options,
    )
    if left is not None:
        whole = options.get("schedule_to_close_timeout")
        options["schedule_to_close_timeout"] = left if whole is None else min(whole, left)
    return options


def _given_up(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, ActivityTimeoutError) and cause.type is not None:
        return f"{cause.type.name} timeout".lower().replace("_", "-")
    return error_type(error)
