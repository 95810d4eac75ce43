"""How much of its history a run may use for an unwind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_EVENTS: Final = 51_200
"""How many events the server lets a history have."""

MAX_BYTES: Final = 50 * 1024 * 1024
"""How large the server lets a history grow."""

EVENTS_PER_UNDO: Final = 6
"""Scheduled, started, completed, and a workflow task."""

BYTES_PER_UNDO: Final = 1_200
"""What those events take without payloads."""

PAYLOAD_GROWTH: Final = 1.5
"""How much larger a payload may be in the history than it was recorded, for a codec or base64."""

RESERVE: Final = 0.1
"""Share of the limits that is left to everything else: signals, handlers, the hand-over itself."""

MAX_HANDED_OVER: Final = 500
"""How many entries one child is given."""


@dataclass(frozen=True, slots=True)
class HistoryBudget:
    """What an unwind may use. Replays depend on it: an open run must not see it change.

    Attributes:
        events: How many events the history may have.
        size: How many bytes it may have.
        per_child: How many entries one child is given, at most.
    """

    events: int = int(MAX_EVENTS * (1 - RESERVE))
    size: int = int(MAX_BYTES * (1 - RESERVE))
    per_child: int = MAX_HANDED_OVER

    def fits(self, events: int, size: int, undos: int, payloads: int) -> bool:
        """Tell whether the rest of a plan can be executed in the run itself.

        Args:
            events: How many events the history has.
            size: How many bytes it has.
            undos: How many undos are left.
            payloads: How many bytes they are given.
        """
        if undos == 0:
            return True
        grown = undos * BYTES_PER_UNDO + payloads * PAYLOAD_GROWTH
        return events + undos * EVENTS_PER_UNDO <= self.events and size + grown <= self.size
