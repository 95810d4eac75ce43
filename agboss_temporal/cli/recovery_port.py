"""The one place where the command line meets `agboss_temporal.recovery`.

Commands know the small records below; what a recovery returns is read into them here only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agboss_temporal.cli.command import CannotRunError

if TYPE_CHECKING:
    from temporalio.client import Client

    from agboss_temporal.core.contract import Contract


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """An undo that a recovery would run.

    Attributes:
        key: Key of the entry.
        action: Registered name of the action.
        undo: Registered name of its undo.
        workflow_id: The workflow that did it: the run's own, or a child's.
        outcome: ``completed``, or ``unknown``.
        task_queue: Where the undo would run.
        started_at: When it was started before, if it was: its outcome is then unknown.
    """

    key: str
    action: str
    undo: str
    workflow_id: str
    outcome: str = "completed"
    task_queue: str = ""
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a recovery of a run would do.

    Attributes:
        workflow_id: The workflow.
        run_id: The run.
        undos: The undos, in the order in which they would run.
        newer_run: A newer run of the same id, which may build on the same effects.
        notes: What only a person can judge.
    """

    workflow_id: str
    run_id: str
    undos: tuple[PlannedUndo, ...] = ()
    newer_run: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a recovery did.

    Attributes:
        recovery_id: Id of the workflow that ran the undos.
        status: Status of its report; ``running`` if it was not waited for.
        verdicts: Key, action and verdict of each undo, with the reason.
    """

    recovery_id: str
    status: str
    verdicts: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SweptRun:
    """What became of one run in a sweep.

    Attributes:
        workflow_id: The workflow.
        run_id: The run.
        result: In one word: a status of a report, ``planned``, ``refused``, ``failed``.
        detail: How many undos, or why not.
        is_clean: Whether nothing of it is left to do.
    """

    workflow_id: str
    run_id: str
    result: str
    detail: str = ""
    is_clean: bool = True


async def plan(
    client: Client, workflow_id: str, run_id: str | None, contracts: Sequence[Contract] | None
) -> Plan:
    """Plan the recovery of a run."""
    found = await _recovery().plan(client, workflow_id, run_id, contracts=contracts)
    return Plan(
        workflow_id=found.workflow_id,
        run_id=found.run_id,
        undos=tuple(_planned(found.workflow_id, undo) for undo in found.undos),
        newer_run=found.newer_run_id,
        notes=tuple(map(str, found.notes)),
    )


async def recover(
    client: Client,
    plan: Plan,
    contracts: Sequence[Contract] | None,
    *,
    on_newer_run: bool,
    wait: bool,
) -> Outcome:
    """Run what a plan says, as the run stands then."""
    found = await _recovery().recover(
        client,
        plan.workflow_id,
        plan.run_id,
        contracts=contracts,
        on_newer_run=on_newer_run,
        wait=wait,
    )
    report = found.report
    return Outcome(
        recovery_id=found.recovery_id,
        status="running" if report is None else report.status,
        verdicts=()
        if report is None
        else tuple((e.key, e.action, e.verdict or "", e.reason or "") for e in report.entries),
    )


async def sweep(
    client: Client,
    query: str,
    contracts: Sequence[Contract] | None,
    *,
    dry_run: bool,
    concurrency: int,
    on_progress: Callable[[Any], None] | None = None,
) -> list[SweptRun]:
    """Recover all runs that a query finds."""
    found = await _recovery().sweep(
        client,
        query,
        contracts=contracts,
        dry_run=dry_run,
        concurrency=concurrency,
        on_progress=on_progress,
    )
    runs: Iterable[Any] = found.runs
    return [
        SweptRun(run.workflow_id, run.run_id, run.result, run.detail, run.is_clean) for run in runs
    ]


def _planned(workflow_id: str, undo: Any) -> PlannedUndo:
    return PlannedUndo(
        key=undo.key,
        action=undo.action,
        undo=undo.undo,
        workflow_id=undo.workflow_id or workflow_id,
        outcome=undo.outcome,
        task_queue=undo.task_queue,
        started_at=undo.started_at,
    )


def _recovery() -> Any:
    try:
        return importlib.import_module("agboss_temporal.recovery")
    except ModuleNotFoundError as err:
        if err.name != "agboss_temporal.recovery":
            raise
        raise CannotRunError("this version of agboss-temporal cannot recover yet") from err
