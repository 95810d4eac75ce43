"""Running a plan: newest first, one undo after another, bounded, and whatever cancels the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.api.common.v1 import Payloads
from temporalio.common import Priority, RawValue
from temporalio.exceptions import ActivityError, ApplicationError, FailureError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from agboss_temporal.core import markdown
from agboss_temporal.core.ledger import Entry, Step, UnitPath
from agboss_temporal.core.order import reverse_completion
from agboss_temporal.core.report import CompensationReport, Planned, Unwind
from agboss_temporal.exceptions import CompensationFailedError
from agboss_temporal.policy import DEFAULT_UNDO_OPTIONS, CompensationPolicy
from agboss_temporal.run import Run, settle
from agboss_temporal.undo_context import UndoContext, UndoReason

T = TypeVar("T")

MAX_SUMMARY_BYTES: Final = 200

EXPLICIT: Final = "explicit"
"""What stands for the trigger where the workflow's code asked for the unwind."""


async def protected(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Run work to its end, however often the caller is cancelled meanwhile.

    Returns:
        The work's result, and whether a cancel came.
    """
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            probe_eviction()
            cancelled = True
    return task.result(), cancelled


def probe_eviction() -> None:
    """Raise the SDK's own eviction error if the workflow is being evicted, else do nothing.

    Eviction throws a cancellation into every task, which nothing else tells from a real one.
    """
    workflow.random()


@dataclass(frozen=True)
class Why:
    """What starts an unwind."""

    trigger: str
    error: BaseException | None = None

    @property
    def cause(self) -> str | None:
        """Type of the error, as clients see it."""
        return None if self.error is None else error_type(self.error)

    @property
    def reason(self) -> UndoReason:
        """What an undo is told of it."""
        if self.error is None:
            return UndoReason(self.trigger)
        raised = _raised(self.error)
        message = raised.message if isinstance(raised, FailureError) else str(raised)
        return UndoReason(self.trigger, self.cause, message)


def error_type(error: BaseException) -> str:
    """Return the type of an error as clients see it: what an activity raised, unwrapped."""
    raised = _raised(error)
    if isinstance(raised, ApplicationError) and raised.type:
        return raised.type
    return type(raised).__name__


def _raised(error: BaseException) -> BaseException:
    while isinstance(error, ActivityError) and error.cause is not None:
        error = error.cause
    return error


async def unwind(
    run: Run,
    why: Why,
    *,
    unit: UnitPath = (),
    only: str | None = None,
    select: Callable[[Entry], bool] | None = None,
) -> Unwind:
    """Undo what is open under a unit.

    First every named call still running there is asked to cancel and settles; named calls that
    are started meanwhile are refused.

    Args:
        run: The run.
        why: What starts it.
        unit: The unit to unwind; by default the whole run.
        only: Undo only executions of this action.
        select: Undo only entries for which this is true.

    Returns:
        The unwind, ended. It is not listed in the run if there was nothing to undo.
    """
    probe_eviction()
    async with run.lock:
        record = Unwind(len(run.unwinds) + 1, why.trigger, why.cause, started_at=run.now())
        run.unwinds.append(record)
        run.close_unit(unit)
        try:
            await settle(run.calls_within(unit, only))
            record.plan = _plan(run, unit, only, select)
            if record.plan:
                await _execute(run, record, why)
            else:
                run.unwinds.remove(record)
        finally:
            run.reopen_unit(unit)
            record.ended_at = run.now()
    _show(run)
    return record


async def compensate_now(run: Run, only: str | None) -> CompensationReport:
    """Do what ``compensate()`` promises."""
    record, cancelled = await protected(unwind(run, Why(EXPLICIT), only=only))
    failed = any(p.verdict not in ("undone", "irreversible") for p in record.plan)
    if cancelled and failed:
        _cancel_again()
    if failed:
        raise CompensationFailedError(run.report())
    if cancelled:
        raise asyncio.CancelledError
    return run.report()


def _cancel_again() -> None:
    """Let the next await of this task see the cancel that came while it could not be obeyed."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()


def needed(run: Run) -> bool:
    """Tell whether an unwind of the whole run would have anything to settle or to undo."""
    return bool(run.calls_within(())) or not all(
        e.contract.irreversible for e in run.ledger.to_undo()
    )


def _plan(
    run: Run, unit: UnitPath, only: str | None, select: Callable[[Entry], bool] | None
) -> list[Planned]:
    wanted = [
        e
        for e in run.ledger.to_undo(unit)
        if (only is None or e.contract.action == only) and (select is None or select(e))
    ]
    if all(e.contract.irreversible for e in wanted):
        return []
    return [Planned(e, outcome=e.outcome) for e in reverse_completion(wanted)]


async def _execute(run: Run, record: Unwind, why: Why) -> None:
    policy = run.policy or CompensationPolicy()
    stopped = False
    for number, planned in enumerate(record.plan, 1):
        _show(run)
        planned.started_at = run.now()
        left = _time_left(record.started_at, policy.total_timeout, planned.started_at)
        if planned.entry.contract.irreversible:
            _close(run, planned, Step.KEEP)
        elif stopped:
            _close(run, planned, Step.LEAVE, "an undo before it gave up")
        elif left is not None and left <= timedelta(0):
            _close(run, planned, Step.LEAVE, "total_timeout")
        else:
            summary = f"undo of {planned.entry.contract.action} {number}/{len(record.plan)}"
            reason = await _undo(run, record, planned.entry, why, policy, left, summary)
            _close(run, planned, Step.SUCCEED if reason is None else Step.FAIL, reason)
            stopped = reason is not None and policy.on_exhausted == "stop"


def _close(run: Run, planned: Planned, step: Step, reason: str | None = None) -> None:
    run.ledger.move(planned.entry, step)
    planned.verdict = str(planned.entry.state)
    planned.reason = reason
    planned.ended_at = run.now()


async def _undo(
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
    options: dict[str, Any] = {
        **DEFAULT_UNDO_OPTIONS,
        "task_queue": entry.task_queue,
        "priority": entry.priority or Priority.default,
        **policy.undo_options,
        **entry.contract.undo_options,
    }
    if left is not None:
        whole = options.get("schedule_to_close_timeout")
        options["schedule_to_close_timeout"] = left if whole is None else min(whole, left)
    return options


def _time_left(
    started: datetime | None, total: timedelta | None, now: datetime
) -> timedelta | None:
    if total is None or started is None:
        return None
    return started + total - now


def _given_up(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, ActivityTimeoutError) and cause.type is not None:
        return f"{cause.type.name} timeout".lower().replace("_", "-")
    return error_type(error)


def _show(run: Run) -> None:
    """Put the report into the workflow's current details, unless the user has set their own."""
    if workflow.get_current_details() in ("", run.shown):
        run.shown = markdown.details(run.report())
        workflow.set_current_details(run.shown)
