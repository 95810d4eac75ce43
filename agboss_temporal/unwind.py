"""An unwind from its start to its end: what runs settles, the rest is planned and executed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal.call import settle, settled
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.order import reverse_completion
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.scope import Scope
from agboss_temporal.exceptions import UNWIND_IN_PROGRESS, CompensationFailedError
from agboss_temporal.execution import execute, show
from agboss_temporal.run import Run
from agboss_temporal.turns import Turn
from agboss_temporal.undo import Why

T = TypeVar("T")

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


def unwind(
    run: Run,
    why: Why,
    scope: Scope,
    *,
    label: str | None = None,
    only: str | None = None,
    select: Callable[[Entry], bool] | None = None,
    ending: bool = False,
) -> Coroutine[Any, Any, Unwind]:
    """Undo what is open in a scope.

    It is announced by the call itself, not when it is first awaited: a run that ends in the same
    turn of the loop waits for it.

    First every named call still running there is asked to cancel and settles; named calls that
    are started there meanwhile are refused.

    Args:
        run: The run.
        why: What starts it.
        scope: What it covers.
        label: How the report names the unit; ``None`` for the run.
        only: Undo only executions of this action.
        select: Undo only entries for which this is true.
        ending: Whether the run is closed by it, or while it goes on.

    Returns:
        The unwind, ended. It is not listed in the run if there was nothing to undo.
    """
    probe_eviction()
    if run.closing and not ending:
        raise ApplicationError(
            "there is nothing to compensate any more: the run is ending",
            type=UNWIND_IN_PROGRESS,
            non_retryable=True,
        )
    record = Unwind(why.trigger, why.cause, label)
    return _unwind(run, why, scope, record, run.turns.announce(scope.unit), only, select)


async def _unwind(
    run: Run,
    why: Why,
    scope: Scope,
    record: Unwind,
    turn: Turn,
    only: str | None,
    select: Callable[[Entry], bool] | None,
) -> Unwind:
    async with run.turns.alone(turn):
        record.started_at = run.now()
        run.unwinds.begin(record)
        run.close_scope(scope)
        calls = run.calls_within(scope, only)
        told = bool(calls or run.calls_about(scope) or _wanted(run, scope, only, select))
        if told:
            run.observer.unwind_begins(record)
            _index(run, "running")
        try:
            await settle(calls)
            while deciding := run.calls_about(scope):
                await settled(deciding)
            wanted = _wanted(run, scope, only, select)
            plan = [Planned(e, outcome=e.outcome) for e in reverse_completion(wanted)]
            run.unwinds.plan(record, plan)
            if told:
                run.observer.unwind_planned(record)
            if record.plan:
                await execute(run, record, why)
        finally:
            run.reopen_scope(scope)
            run.unwinds.end(record, run.now())
        if told:
            run.observer.unwind_ended(record)
            _index(run)
    show(run)
    return record


async def compensate_now(run: Run, only: str | None) -> CompensationReport:
    """Do what ``compensate()`` promises."""
    unit = run.unit
    record, cancelled = await protected(
        unwind(run, Why(EXPLICIT), run.scope(unit.path), label=unit.label, only=only)
    )
    failed = CompensationFailedError(run.report()) if record.left_behind else None
    if cancelled:
        # The run's end, or whoever cancelled, comes first; what was left behind is in the report.
        raise asyncio.CancelledError from failed
    if failed is not None:
        raise failed
    return run.report()


def needed(run: Run, scope: Scope) -> bool:
    """Tell whether an unwind would have anything to settle or to undo."""
    if run.calls_within(scope) or run.calls_about(scope):
        return True
    return not all(e.contract.irreversible for e in run.ledger.to_undo(scope))


def index_end(run: Run) -> None:
    """Bring the search attributes of a run that closes up to date, if it has any."""
    if run.index.shown is not None:
        _index(run)


def _index(run: Run, status: str | None = None) -> None:
    if run.index.is_kept:
        left_open = len(run.ledger.to_undo()) + run.unwinds.left_open
        run.index.show(status or run.report().status, left_open)


def _wanted(
    run: Run, scope: Scope, only: str | None, select: Callable[[Entry], bool] | None
) -> list[Entry]:
    """List what an unwind answers for; nothing if none of it can be undone."""
    wanted = [
        e
        for e in run.ledger.to_undo(scope)
        if (only is None or e.contract.action == only) and (select is None or select(e))
    ]
    return [] if all(e.contract.irreversible for e in wanted) else wanted
