"""The moves of a program: what happens next, whenever nothing moves by itself any more.

Both the driver and the reference ask the same script, so a program decides all that a server and a
scheduler would otherwise leave open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.model.program import Event, Program

MAX_MOVES = 150


@dataclass(frozen=True)
class Move:
    """One move: let an activity go, let something arrive, or both in one workflow task."""

    choice: str | None = None
    event: Event | None = None

    def __str__(self) -> str:
        event = "" if self.event is None else f"{self.event.kind}{self.event.which or ''}"
        return "+".join(filter(None, [event, self.choice])) or "stuck"


class Script:
    """Makes the moves of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._events = sorted(program.events, key=lambda e: e.at)
        self._cancelled = False
        self._step = 0

    def move(self, flight: Sequence[str]) -> Move:
        """Make the next move.

        Args:
            flight: Labels of the activities in flight, sorted.

        Returns:
            The move, empty when nothing can happen any more. A run that waits for nothing in
            flight gets its next event early, and a cancel when no event is left.
        """
        step, self._step = self._step, self._step + 1
        choices = self._program.choices
        choice = (
            flight[choices[step % len(choices)] % len(flight) if choices else 0] if flight else None
        )
        if step >= MAX_MOVES:
            return Move()
        if self._events and (self._events[0].at <= step or choice is None):
            event = self._events.pop(0)
        elif choice is None and not self._cancelled:
            event = Event("cancel")
        else:
            return Move(choice)
        self._cancelled |= event.kind == "cancel"
        together = event.kind == "cancel" and event.together and choice and "/" not in choice
        return Move(choice if together else None, event)
