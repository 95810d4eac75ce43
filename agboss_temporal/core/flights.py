"""What is kept of each call that has not settled while a history is folded."""

from __future__ import annotations

from dataclasses import dataclass

from agboss_temporal.core.facts import Call
from agboss_temporal.core.hand_overs_seen import Handed
from agboss_temporal.core.rows import Row
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.unwinds_seen import Undoing


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
    handed: Handed | None = None
    attempts: int = 0
    child: int | None = None
    started: bool = False
