"""Keeping unwinds apart that would undo the same: each waits for those announced before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agboss_temporal.core.scope import UnitPath, related


@dataclass(eq=False, slots=True)
class Turn:
    """The place of one unwind in the order in which they were announced."""

    unit: UnitPath
    ended: asyncio.Future[None]
    rivals: list[asyncio.Future[None]]


class Turns:
    """The unwinds of one run that are at work, or announced."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    def __bool__(self) -> bool:
        return bool(self._turns)

    def announce(self, unit: UnitPath) -> Turn:
        """Announce an unwind of a unit; from now on the run's end waits for it."""
        turn = Turn(
            unit,
            ended=asyncio.get_running_loop().create_future(),
            rivals=[other.ended for other in self._turns if related(other.unit, unit)],
        )
        self._turns.append(turn)
        return turn

    @asynccontextmanager
    async def alone(self, turn: Turn) -> AsyncIterator[None]:
        """Wait until what was announced before, in, around or inside the unit, has ended."""
        try:
            if waiting := [ended for ended in turn.rivals if not ended.done()]:
                await asyncio.wait(waiting)
            yield
        finally:
            self._turns.remove(turn)
            turn.ended.set_result(None)

    async def idle(self) -> None:
        """Wait until no unwind is at work or announced, also none that is announced meanwhile."""
        while self._turns:
            await asyncio.wait([turn.ended for turn in self._turns])
