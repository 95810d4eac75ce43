"""What is kept of each entry while a history is folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agboss_temporal.core.entry import Entry
from agboss_temporal.core.facts import Call
from agboss_temporal.core.judging import Judged
from agboss_temporal.core.run_ledger import RunEntry, UndoCall


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
    handed_to: str | None = None

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
            handed_to=self.handed_to,
        )
