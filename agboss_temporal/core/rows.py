"""What is kept of each entry, and of each call in flight, while a history is folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agboss_temporal.core.entry import Entry
from agboss_temporal.core.facts import Call
from agboss_temporal.core.judging import Judged
from agboss_temporal.core.run_ledger import RunEntry, UndoCall
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.unwinds_seen import Undoing


@dataclass(slots=True, eq=False)
class Row:
    """An entry and what the history says beside it."""

    entry: Entry
    call: Call | None = None
    result: Any = None
    args: Sequence[Any] = ()
    settled_event_id: int | None = None
    scheduled_at: datetime | None = None
    settled_at: datetime | None = None
    carried: bool = False
    recorded: bool = True
    may_settle_late: bool = False
    dismissed_as: str | None = None
    judged: Judged | None = None
    undos: list[UndoCall] = field(default_factory=list)

    def result_of_fold(self) -> RunEntry:
        """Describe it."""
        entry, call = self.entry, self.call
        return RunEntry(
            key=entry.key,
            contract=entry.contract,
            ordinal=entry.ordinal,
            unit=entry.unit,
            state=entry.state,
            sequence=entry.sequence,
            after=entry.after,
            doubt=entry.doubt,
            result=self.result,
            args=tuple(self.args),
            carried=self.carried,
            recorded=self.recorded,
            call_id=call.call_id if call else "",
            event_id=call.event_id if call else None,
            settled_event_id=self.settled_event_id,
            scheduled_at=self.scheduled_at,
            settled_at=self.settled_at,
            task_queue=entry.task_queue,
            priority=entry.priority,
            undos=tuple(self.undos),
        )


@dataclass(slots=True, eq=False)
class Flight:
    """A call that has not settled."""

    call: Call
    row: Row | None = None
    commits: str | None = None
    unit: UnitPath = ()
    undoes: Row | None = None
    undo_number: int = 0
    undoing: Undoing | None = None
    attempts: int = 0
    child: int | None = None
    started: bool = False
