"""Calls in the air: scheduled, and not settled yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.facts import About, Call
from agboss_temporal.core.hand_overs_seen import Handed
from agboss_temporal.core.rows import Row
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.undos_seen import Undo


@dataclass(slots=True, eq=False)
class Flight:
    """A call that has not settled, and all that it is.

    Attributes:
        call: The call.
        key: The key that it goes by.
        unit: The unit in which it was made.
        row: The entry that it executes, if it is an action.
        commits: Its name, if it is a committer.
        undo: What it undoes, if it is an undo.
        handed: What it undoes, if it is a child that was given a part of a plan.
        attempts: The attempt that was picked up last.
        started: Whether it was picked up, or, a child, has begun.
    """

    call: Call
    key: str
    unit: UnitPath = ()
    row: Row | None = None
    commits: str | None = None
    undo: Undo | None = None
    handed: Handed | None = None
    attempts: int = 0
    started: bool = False


class Flights:
    """The calls in the air, by the events that scheduled them."""

    def __init__(self) -> None:
        self._flying: dict[int, Flight] = {}
        self._landed: set[int] = set()

    def __iter__(self) -> Iterator[Flight]:
        return iter(self._flying.values())

    def depart(self, flight: Flight) -> None:
        """A call was scheduled."""
        self._flying[flight.call.event_id] = flight

    def flying(self, about: About, does: str) -> Flight:
        """Find the call that an event is about.

        Args:
            about: The event.
            does: What the event does to it, in one word.

        Raises:
            HistoryError: It is not in the air.
        """
        flight = self._flying.get(about.of)
        if flight is None:
            why = "has settled already" if about.of in self._landed else "was never scheduled"
        elif flight.call.kind != about.kind:
            why = f"is no {about.kind}"
        else:
            return flight
        raise HistoryError(about.event_id, f"it {does} what {why} (event {about.of})")

    def start(self, about: About, attempt: int) -> None:
        """A call was picked up.

        Raises:
            HistoryError: It is not in the air, or was picked up before.
        """
        flight = self.flying(about, "starts")
        if flight.started:
            raise HistoryError(about.event_id, f"it starts what was started (event {about.of})")
        flight.started, flight.attempts = True, attempt

    def land(self, about: About, *, started: bool) -> Flight:
        """Take a call out of the air that an event settles.

        Args:
            about: The event.
            started: Whether the call must have been started before.

        Raises:
            HistoryError: It is not there, or was never started.
        """
        flight = self.flying(about, "settles")
        if started and not flight.started:
            raise HistoryError(
                about.event_id, f"it settles what was never started (event {about.of})"
            )
        del self._flying[about.of]
        self._landed.add(about.of)
        return flight
