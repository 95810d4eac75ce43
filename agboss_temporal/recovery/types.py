"""What recoveries say: names, keys, verdicts and times, never a payload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agboss_temporal.core.plan import fold_status


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """An undo that a recovery would run.

    Attributes:
        key: Key of the entry.
        action: Registered name of the action.
        undo: Registered name of its undo.
        workflow_id: The workflow that did it: the run's own, or a child's.
        run_id: Its run.
        outcome: ``completed``, or ``unknown`` if nobody knows whether it took effect.
        task_queue: Where the undo would run.
        started_at: When an undo of it was started before, if it was: whether it took place is then
            unknown, and only its key keeps it from taking place again.
    """

    key: str
    action: str
    undo: str
    workflow_id: str
    run_id: str
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
        under_way: Ids of the workflows that are undoing more of it now.
        recovered_by: Ids of the recoveries that have worked on it before.
        newer_run_id: A newer run of the same id, which may build on the same effects.
        notes: What only a person can judge.
    """

    workflow_id: str
    run_id: str
    undos: tuple[PlannedUndo, ...] = ()
    under_way: tuple[str, ...] = ()
    recovered_by: tuple[str, ...] = ()
    newer_run_id: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to do, for a recovery or for a person."""
        return not (self.undos or self.under_way or self.notes)


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What became of one undo.

    Attributes:
        key: Key of the entry.
        action: Registered name of the action.
        undo: Registered name of its undo.
        workflow_id: The workflow that did the action.
        verdict: As in a report: ``undone``, ``failed``, ``not_run``; ``None`` while
            it is not known.
        reason: For another verdict than ``undone``: an error's type, or the bound that ended it.
        started_at: When the undo was started.
        ended_at: When its verdict was known.
    """

    key: str
    action: str
    undo: str
    workflow_id: str
    verdict: str | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What recoveries of a run have done.

    Attributes:
        workflow_id: The workflow that was recovered.
        run_id: Its run.
        recovery_ids: Ids of the workflows that ran the undos, oldest first.
        undos: What became of each undo, in the order in which they were started.
        left: How many undos are still to be started, because nobody waited for those before them.
        notes: What only a person can judge.
    """

    workflow_id: str
    run_id: str
    recovery_ids: tuple[str, ...] = ()
    undos: tuple[UndoResult, ...] = ()
    left: int = 0
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """As in a report: ``pending``, ``running``, ``completed``, ``partial`` or ``failed``."""
        return fold_status((undo.verdict for undo in self.undos), active=self.left > 0)

    @property
    def is_clean(self) -> bool:
        """Whether everything is undone and nothing is left to a person."""
        return self.status == "completed" and not self.notes


@dataclass(frozen=True, slots=True)
class SweptRun:
    """What became of one run in a sweep.

    Attributes:
        workflow_id: The workflow.
        run_id: The run.
        result: ``none`` where nothing was open, ``open`` where the run goes on, ``planned`` in a
            dry run, ``newer-run`` or ``left`` where it is for a person, ``refused`` or ``error``
            where it could not be found out, else the status of the recovery.
        detail: How many undos, or why not.
        is_clean: Whether nothing of it is left to do.
    """

    workflow_id: str
    run_id: str
    result: str
    detail: str = ""
    is_clean: bool = True


@dataclass(frozen=True, slots=True)
class Sweep:
    """What became of all runs that a query found.

    Attributes:
        query: The query.
        runs: The runs, in the order in which they were found.
    """

    query: str
    runs: tuple[SweptRun, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left to do in any of them."""
        return all(run.is_clean for run in self.runs)
