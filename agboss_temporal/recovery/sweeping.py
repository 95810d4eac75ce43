"""Recovering all runs that a query finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from temporalio.client import Client

from agboss_temporal.core.errors import AgbossError, RecoveryRefused
from agboss_temporal.core.recovery import RECOVERY_TYPE
from agboss_temporal.history.contracts import Declared
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.recovery.executions import Execution, listed
from agboss_temporal.recovery.planning import Drawn, draw, policy_of
from agboss_temporal.recovery.runs import Runs
from agboss_temporal.recovery.starting import Options, execute
from agboss_temporal.recovery.types import Recovery, Sweep, SweptRun

_IN_ORDER: Final = ("completed", "continued_as_new")
"""How a run is closed that leaves nothing to a recovery: its history need not be looked at."""


async def sweep(
    client: Client,
    query: str,
    *,
    contracts: Iterable[Declared] | None = None,
    dry_run: bool = False,
    concurrency: int = 10,
    on_progress: Callable[[SweptRun], None] | None = None,
    policy: CompensationPolicy | None = None,
) -> Sweep:
    """Recover all closed runs that a query finds and that have left something open.

    One run after another is looked at, a few at once, as the server lists them. Doing it again
    passes over what is clean by then, so a sweep that was interrupted is simply repeated. A run
    that has a newer one of the same id is left to a person. What goes wrong with one run is told
    of that run, and the sweep goes on.

    Visibility lags behind by a moment: runs that were closed just now may be missing.

    Args:
        client: As in `recover`.
        query: A list filter, as for ``temporal workflow list --query``, such as
            ``WorkflowType = 'Order' AND ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed')``.
        contracts: As in `plan`.
        dry_run: Only look, and say what would be recovered.
        concurrency: How many runs are looked at, or recovered, at once.
        on_progress: Called with each run when its result is known.
        policy: As in `recover`.

    Returns:
        What became of each run.

    Raises:
        ValueError: ``concurrency`` is less than 1.
        temporalio.service.RPCError: The query was refused, or the server cannot list.
    """
    if concurrency < 1:
        raise ValueError("concurrency must be at least 1")
    declared = None if contracts is None else tuple(contracts)
    found = _Found(listed(client, query))
    swept: dict[int, SweptRun] = {}

    async def work() -> None:
        while (next_one := await found.take()) is not None:
            number, execution = next_one
            options = Options(Runs(client, declared), policy_of(client, policy))
            swept[number] = await _swept(options, execution, dry_run=dry_run)
            if on_progress is not None:
                on_progress(swept[number])

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as all_of_them:
        raise all_of_them.exceptions[0] from None
    return Sweep(query, tuple(swept[number] for number in sorted(swept)))


class _Found:
    """Gives several tasks one run after another."""

    def __init__(self, executions: AsyncIterator[Execution]) -> None:
        self._executions = executions
        self._lock = asyncio.Lock()
        self._count = 0

    async def take(self) -> tuple[int, Execution] | None:
        async with self._lock:
            async for execution in self._executions:
                self._count += 1
                return self._count, execution
            return None


async def _swept(options: Options, execution: Execution, *, dry_run: bool) -> SweptRun:
    def told(result: str, detail: str = "", *, is_clean: bool = True) -> SweptRun:
        return SweptRun(execution.workflow_id, execution.run_id, result, detail, is_clean)

    if execution.how is None:
        return told("open", "the run goes on")
    if execution.how in _IN_ORDER or execution.workflow_type == RECOVERY_TYPE:
        return told("none")
    try:
        drawn = await draw(options.runs, execution.workflow_id, execution.run_id, options.policy)
        verdict = _without_doing(drawn, dry_run=dry_run)
        if verdict is not None:
            return told(verdict[0], verdict[1], is_clean=drawn.plan.is_clean)
        done = await execute(options, drawn)
    except RecoveryRefused as err:
        return told("refused", str(err), is_clean=err.why in ("finished", "continued-as-new"))
    except AgbossError as err:
        return told("error", str(err), is_clean=False)
    except Exception as err:  # One run must not keep the others from being recovered.
        return told("error", type(err).__name__, is_clean=False)
    return told(done.status, _detail(done), is_clean=done.is_clean)


def _without_doing(drawn: Drawn, *, dry_run: bool) -> tuple[str, str] | None:
    """Say of a run that is not to be recovered why; ``None`` if it is."""
    plan = drawn.plan
    count = len(plan.undos)
    notes = _noted(plan.notes)
    if not (count or plan.under_way):
        return ("left", notes) if plan.notes else ("none", "")
    if plan.newer_run_id is not None and count:
        return "newer-run", f"{_counted(count, 'undo')}; run {plan.newer_run_id} is newer"
    if dry_run:
        parts = [_counted(count, "undo")]
        parts += [f"under way in {each}" for each in plan.under_way]
        return "planned", "; ".join([*parts, *([notes] if notes else [])])
    return None


def _detail(done: Recovery) -> str:
    verdicts = [undo.verdict or "running" for undo in done.undos]
    parts = [f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)]
    return "; ".join([*parts, *([_noted(done.notes)] if done.notes else [])])


def _noted(notes: tuple[str, ...]) -> str:
    return f"{_counted(len(notes), 'note')} for a person" if notes else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
