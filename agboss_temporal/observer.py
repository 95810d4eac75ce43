"""Who is told what happens in a run: the one door to logs, metrics and spans."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from agboss_temporal.core.entry import Entry, State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.plan import Planned, Unwind

_NOTHING: Final = nullcontext()


class Observer:
    """Is told what happens in one run. This one takes no notice.

    It is told the same, in the same order, when the run is replayed, and what it does about it
    leaves the run's commands as they are. Methods are called from workflow code, except `moved`
    and `committer_in_doubt`, which may be called while the SDK applies events, when nothing of
    `temporalio.workflow` works.
    """

    def entered(self, loop: asyncio.AbstractEventLoop) -> None:
        """Learn the run's loop, before anything else is told but what was carried over."""

    def main_begins(self) -> None:
        """Learn that the run method is about to be executed, in the task that calls this."""

    def moved(self, entry: Entry, before: State) -> None:
        """Learn that an entry has moved."""

    def committer_in_doubt(self, committer: CommitterInDoubt) -> None:
        """Learn that a committer may have taken effect."""

    def starting(self, entry: Entry, input: Any) -> AbstractContextManager[None]:
        """Enclose the start of an action's call, which sends ``input``."""
        return _NOTHING

    def unwind_begins(self, unwind: Unwind) -> None:
        """Learn that an unwind begins, in the task that will execute it."""

    def unwind_planned(self, unwind: Unwind) -> None:
        """Learn that what ran has settled and that an unwind has its plan, perhaps an empty one."""

    def unwind_ended(self, unwind: Unwind) -> None:
        """Learn that every planned entry of an unwind has its verdict."""

    def undo_begins(self, unwind: Unwind, planned: Planned) -> None:
        """Learn that a planned undo is about to be called."""

    def calling_undo(self, entry: Entry) -> AbstractContextManager[None]:
        """Enclose the call of a planned undo."""
        return _NOTHING

    def link_to(self, entry: Entry) -> str | None:
        """Return the span of an action, for a call that undoes it, as a W3C ``traceparent``."""
        return None

    def answered(self, entry: Entry) -> None:
        """Learn that another run has told, and observed, the verdict that an entry now gets."""

    def judged(self, unwind: Unwind, planned: Planned) -> None:
        """Learn that a planned entry has its verdict."""
