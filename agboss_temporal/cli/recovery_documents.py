"""What is shown of plans, recoveries and sweeps."""

from __future__ import annotations

from typing import Final

from agboss_temporal.recovery.types import Plan, PlannedUndo, Recovery, Sweep
from agboss_temporal.views import looks
from agboss_temporal.views.document import Cell, Column, Document, Table

_WORKFLOW: Final = Column("workflow id", 14)
_KEY: Final = Column("key", 18)


def plan_document(plan: Plan) -> Document:
    """Describe what a recovery would do."""
    count = looks.counted(len(plan.undos), "undo") if plan.undos else "nothing is open"
    facts = [
        ("run", Cell(plan.run_id)),
        ("to do", Cell(count, "open" if plan.undos else "good")),
    ]
    facts += [("under way in", Cell(each)) for each in plan.under_way]
    facts += [("recovered by", Cell(each)) for each in plan.recovered_by]
    if plan.newer_run_id is not None:
        text = f"{plan.newer_run_id}: it may build on what would be undone"
        facts.append(("newer run", Cell(text, "doubt")))
    facts += [("note", Cell(note, "doubt")) for note in plan.notes]
    columns = (
        *(Column("#", 1), Column("undo", 14), Column("of action", 14), _KEY),
        *(_WORKFLOW, Column("queue", 8), Column("before", 14)),
    )
    rows = [
        (
            *(Cell(str(number)), Cell(undo.undo), Cell(undo.action), Cell(undo.key)),
            *(Cell(undo.workflow_id), Cell(undo.task_queue)),
            _before(undo),
        )
        for number, undo in enumerate(plan.undos, 1)
    ]
    table = Table("Undos, in the order in which they would run", columns, rows)
    return Document(f"Recovery plan of {plan.workflow_id}", tuple(facts), (table,))


def _before(undo: PlannedUndo) -> Cell:
    parts = ["action in doubt"] if undo.outcome == "unknown" else []
    if undo.started_at is not None:
        parts.append(f"started {looks.clock(undo.started_at)}, outcome unknown")
    return Cell(", ".join(parts), "doubt" if parts else "")


def recovery_document(done: Recovery) -> Document:
    """Describe what a recovery did."""
    facts = [("by", Cell(each)) for each in done.recovery_ids]
    facts.append(("status", Cell(done.status, looks.STATUS_TONES.get(done.status, ""))))
    if done.left:
        facts.append(("left", Cell(f"{looks.counted(done.left, 'undo')}: recover again", "open")))
    facts += [("note", Cell(note, "doubt")) for note in done.notes]
    columns = (Column("verdict", 9), Column("action", 14), _KEY, Column("why", 14))
    rows = [
        (
            _verdict(undo.verdict),
            *(Cell(undo.action), Cell(undo.key), Cell(undo.reason or "")),
        )
        for undo in done.undos
    ]
    table = Table("Undos", columns, rows)
    return Document(f"Recovery of {done.workflow_id}", tuple(facts), (table,))


def _verdict(verdict: str | None) -> Cell:
    if verdict is None:
        return Cell("running")
    return Cell(looks.state_text(verdict), looks.TONES.get(verdict, ""))


def sweep_document(sweep: Sweep, *, dry_run: bool) -> Document:
    """Describe a sweep."""
    runs = sweep.runs
    left = sum(1 for run in runs if not run.is_clean)
    what = "to recover" if dry_run else "left"
    facts = (
        ("query", Cell(sweep.query)),
        ("runs", Cell(str(len(runs)))),
        (what, Cell(str(left), "open" if left else "good")),
    )
    columns = (Column("result", 9), _WORKFLOW, Column("run id", 14), Column("detail", 20))
    rows = [
        (
            Cell(run.result, "" if run.is_clean else "open"),
            *(Cell(run.workflow_id), Cell(run.run_id), Cell(run.detail)),
        )
        for run in runs
    ]
    return Document("Sweep", facts, (Table("Runs", columns, rows),))
