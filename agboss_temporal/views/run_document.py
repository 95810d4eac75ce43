"""What is shown of a run: its facts, and tables of all that became of its effects."""

from __future__ import annotations

from collections.abc import Iterator

from agboss_temporal.core.entry import State
from agboss_temporal.core.report import EntryReport
from agboss_temporal.core.run_ledger import ChildRun, RunEntry, RunLedger
from agboss_temporal.core.scope import path_text
from agboss_temporal.views import looks
from agboss_temporal.views.document import Cell, Column, Document, Table
from agboss_temporal.views.standing import Standing, standing

_NUMBER = Column("#", 1)
_STATE = Column("state", 9)
_ACTION = Column("action", 14)
_UNIT = Column("unit", 4)


def run_document(ledger: RunLedger) -> Document:
    """Describe a run."""
    left = standing(ledger)
    day = looks.only_day(ledger)
    answers = {answer.key: answer for answer in ledger.report.entries}
    return Document(
        title=f"{ledger.workflow_type} {ledger.workflow_id}",
        facts=tuple(_facts(ledger, left)),
        tables=(
            _left_behind(left, answers),
            _in_doubt(ledger, left, day),
            _entries(ledger, left, answers, day),
            _unwinds(ledger, day),
            _children(ledger),
            _unrecorded(ledger),
            _unreadable(ledger),
        ),
    )


def end_text(ledger: RunLedger) -> str:
    """Tell how a run was closed."""
    end = ledger.end
    if end is None:
        return f"open, at event {ledger.last_event_id}"
    text: str = end.how
    if end.failure_type:
        text += f" with {end.failure_type}"
    if end.at is not None:
        text += f" at {looks.clock(end.at)}"
    text += f", event {end.event_id}"
    return f"{text}, followed by run {end.next_run_id}" if end.next_run_id else text


def _facts(ledger: RunLedger, left: Standing) -> Iterator[tuple[str, Cell]]:
    report = ledger.report
    how = "running" if ledger.end is None else ledger.end.how
    yield "run", Cell(ledger.run_id)
    yield "end", Cell(end_text(ledger), looks.END_TONES.get(how, "bad"))
    status = report.status
    if report.trigger is not None:
        status += f", {report.trigger}"
    if report.cause is not None:
        status += f", because of {report.cause}"
    yield "compensation", Cell(status, looks.STATUS_TONES.get(report.status, ""))
    if report.also_failed:
        yield "also failed", Cell(", ".join(report.also_failed))
    if ledger.entries:
        yield "entries", Cell(looks.tally(entry.state for entry in ledger))
    yield "needs attention", Cell(str(left), "" if left.is_clean else "bad")
    reset = _reset_text(ledger)
    if reset:
        yield "safe reset", Cell(reset)


def _reset_text(ledger: RunLedger) -> str:
    if not ledger.task_event_ids:
        return ""
    event_id = ledger.last_safe_reset
    if event_id is None:
        return "nowhere: every point would build on actions that were undone"
    if event_id == ledger.task_event_ids[-1]:
        return f"anywhere up to event {event_id}"
    return f"up to event {event_id}; later points build on actions that were undone"


def _left_behind(left: Standing, answers: dict[str, EntryReport]) -> Table:
    columns = (_NUMBER, _STATE, _ACTION, Column("undo", 14), Column("key", 18), Column("why", 14))
    rows = [
        (
            Cell(looks.place_in_run(entry)),
            _state(entry),
            Cell(entry.contract.action),
            Cell(entry.contract.undo or "-"),
            Cell(entry.key),
            Cell(_reason(entry, answers) or ("nothing undid it" if entry in left.open else "")),
        )
        for entry in [*reversed(left.failed), *reversed(left.open)]
    ]
    return Table("Left behind: the effect is still there", columns, rows)


def _in_doubt(ledger: RunLedger, left: Standing, day: str | None) -> Table:
    columns = (
        *(_NUMBER, Column("kind", 11), Column("name", 14), Column("role", 9)),
        *(Column("key", 18), _UNIT, Column("started", 12), Column("event", 5)),
    )
    rows = [
        (
            Cell(looks.place_in_run(entry)),
            Cell(_kind_of_doubt(entry), "doubt"),
            Cell(entry.contract.action),
            Cell("undo" if entry.state is State.UNDOING else "action"),
            Cell(entry.key),
            _unit(entry),
            Cell(looks.clock(entry.scheduled_at, day)),
            Cell("" if entry.event_id is None else str(entry.event_id)),
        )
        for entry in reversed(left.in_doubt)
    ]
    rows += [
        (
            *(Cell(call.key.rpartition("-")[2]), Cell(f"? {call.doubt}", "doubt")),
            *(Cell(call.name), Cell("committer"), Cell(call.key), Cell(""), Cell(""), Cell("")),
        )
        for call in reversed(left.committers)
    ]
    note = f"and {left.more_in_doubt} older ones" if left.more_in_doubt else ""
    return Table("In doubt: nobody knows whether it took effect", columns, rows, note)


def _kind_of_doubt(entry: RunEntry) -> str:
    if entry.state is State.UNDOING:
        return "? undo not ended"
    return f"? {entry.doubt or 'not ended'}"


def _entries(
    ledger: RunLedger, left: Standing, answers: dict[str, EntryReport], day: str | None
) -> Table:
    columns = (
        *(_NUMBER, _STATE, _ACTION, Column("undo", 14), _UNIT),
        *(Column("when", 12), Column("how its undo went", 16)),
    )
    ordered = sorted(
        enumerate(ledger.entries),
        key=lambda each: (each[1].sequence == 0, each[1].sequence, each[0]),
        reverse=True,
    )
    apart = {id(entry) for entry in left.in_doubt}
    rows = [
        (
            Cell(looks.place_in_run(entry)),
            _state(entry),
            Cell(entry.contract.action),
            Cell(entry.contract.undo or "-"),
            _unit(entry),
            Cell(looks.clock(entry.settled_at or entry.scheduled_at, day)),
            Cell(_told(entry, answers), "bad" if entry in left.failed else ""),
        )
        for _, entry in ordered
        if id(entry) not in apart
    ]
    where = f", {day} UTC" if day else ", UTC"
    note = "^ was handed over by an earlier run" if any(e.carried for e in ledger) else ""
    return Table(f"Entries, newest first{where}", columns, rows, note)


def _state(entry: RunEntry) -> Cell:
    return Cell(looks.state_text(entry.state), looks.TONES[entry.state])


def _unit(entry: RunEntry) -> Cell:
    return Cell(path_text(entry.unit) or "run")


def _reason(entry: RunEntry, answers: dict[str, EntryReport]) -> str | None:
    answer = answers.get(entry.key)
    if answer is not None and answer.reason:
        return answer.reason
    return entry.undos[-1].reason if entry.undos else None


def _told(entry: RunEntry, answers: dict[str, EntryReport]) -> str:
    answer = answers.get(entry.key)
    decided_by = answer.decided_by if answer is not None else None
    text = looks.undo_text(entry, _reason(entry, answers), decided_by)
    if entry.doubt is not None:
        text = f"outcome unknown: {entry.doubt}; {text}".rstrip("; ")
    return text if entry.recorded else f"{text}; judged by its contract".lstrip("; ")


def _unwinds(ledger: RunLedger, day: str | None) -> Table:
    columns = (
        *(_NUMBER, Column("status", 9), Column("trigger", 12), Column("cause", 12)),
        *(_UNIT, Column("began", 12), Column("ended", 12)),
    )
    rows = [
        (
            Cell(str(unwind.ordinal)),
            Cell(unwind.status, looks.STATUS_TONES.get(unwind.status, "")),
            Cell(unwind.trigger),
            Cell(unwind.cause or "-"),
            Cell("run" if unwind.unit is None else unwind.unit),
            Cell(looks.clock(unwind.started_at, day)),
            Cell(looks.clock(unwind.ended_at, day)),
        )
        for unwind in reversed(ledger.report.unwinds)
    ]
    older = ledger.report.older_unwinds
    return Table("Unwinds, newest first", columns, rows, f"and {older} older ones" if older else "")


def _children(ledger: RunLedger) -> Table:
    columns = (
        *(_STATE, Column("type", 12), Column("workflow id", 16)),
        *(Column("run id", 12), Column("on close", 8), Column("what it is", 10)),
    )
    rows = [
        (
            _child_end(child),
            Cell(child.workflow_type),
            Cell(child.workflow_id),
            Cell(child.run_id or "-"),
            Cell(child.parent_close_policy),
            Cell(_child_role(child)),
        )
        for child in ledger.children
    ]
    return Table("Child workflows", columns, rows)


def _child_end(child: ChildRun) -> Cell:
    how = child.end or "unknown"
    return Cell(how, looks.END_TONES.get(how, "doubt" if child.end is None else "bad"))


def _child_role(child: ChildRun) -> str:
    if child.takes_over:
        return "runs undos of this run"
    parts = ["an action"] if child.key else []
    return ", ".join([*parts, "unwinds itself"] if child.compensated else parts) or "plain"


def _unrecorded(ledger: RunLedger) -> Table:
    rows = [
        (Cell(str(call.event_id)), Cell(call.action, "open"), Cell(call.kind))
        for call in ledger.unrecorded
    ]
    columns = (Column("event", 5), _ACTION, Column("kind", 8))
    note = "give its contracts, and it is judged by them" if rows else ""
    return Table("Unrecorded: actions without a record, which nothing undoes", columns, rows, note)


def _unreadable(ledger: RunLedger) -> Table:
    rows = [
        (Cell(str(each.event_id)), Cell(each.what, "bad"), Cell(each.reason))
        for each in ledger.unreadable
    ]
    columns = (Column("event", 5), Column("what", 8), Column("why", 20))
    note = "entries may be missing above" if rows else ""
    return Table("Could not be read", columns, rows, note)
