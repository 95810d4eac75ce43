"""A named call: what it is to the ledger, and whether it has settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Sequence
from enum import IntEnum
from typing import Any

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.scope import UnitPath


class Cancelling(IntEnum):
    """How far the cancel of a call has got."""

    NONE = 0
    WANTED = 1
    """It is to be cancelled as soon as it has been started."""
    ASKED = 2
    """The server is asked on the next turn of the loop."""
    SENT = 3


class Call:
    """A named call: what it is to the ledger, and whether it has settled.

    Attributes:
        contract: What is declared for what it calls, if anything is.
        entry: The entry that it is the action of.
        commits: The name that it commits, if it is a committer.
        key: Its own key.
        ordinal: Its place among all calls that the run started.
        unit: The unit that it belongs to: at first the one in which it was started.
        started_in: The unit in which it was started, as its record says.
        ended: Units whose end its record tells.
        update: The update that its record names.
        undoes: The entry that it undoes, if the workflow's code called an undo.
        is_undo: Whether it is an undo, also where it is not known of what.
        left_alone: Whether no unwind cancels it or waits for it.
        cancelling: How far its cancel has got.
        settled: Whether the event that settles it has been applied.
    """

    __slots__ = (
        "_cancel",
        "_waiter",
        "_withdraw",
        "cancelling",
        "commits",
        "contract",
        "ended",
        "entry",
        "is_undo",
        "key",
        "left_alone",
        "ordinal",
        "raw",
        "settled",
        "started_in",
        "undoes",
        "unit",
        "update",
    )

    def __init__(
        self,
        key: str,
        ordinal: int,
        unit: UnitPath,
        *,
        contract: Contract | None = None,
        entry: Entry | None = None,
        commits: str | None = None,
        undoes: Entry | None = None,
    ) -> None:
        self.key = key
        self.ordinal = ordinal
        self.unit = unit
        self.started_in = unit
        self.ended: Sequence[UnitPath] = ()
        self.update: str | None = None
        self.contract = contract
        self.entry = entry
        self.commits = commits
        self.undoes = undoes
        self.is_undo = undoes is not None
        self.raw: Any = None
        self.settled = False
        self.left_alone = False
        self.cancelling = Cancelling.NONE
        self._withdraw = False
        self._cancel: Callable[[], object] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def cancellable(self, cancel: Callable[[], object]) -> None:
        """Say how the call is asked to cancel; it is, if that was wanted while it was starting."""
        self._cancel = cancel
        if self.cancelling is Cancelling.WANTED:
            cancel()

    @property
    def is_named(self) -> bool:
        """Whether a contract names it; else it is a child that unwinds itself."""
        return self.entry is not None or self.commits is not None or self.is_undo

    @property
    def withdrawn(self) -> bool:
        """Whether an unwind has asked it to cancel: its success is about to be undone."""
        return self._withdraw and self.entry is not None

    def ask_to_cancel(self, *, withdraw: bool) -> None:
        """Ask the server once to cancel the call, as soon as it has been started.

        Args:
            withdraw: Whether its success is about to be undone, so that whoever awaits it must not
                build on it.
        """
        self._withdraw = withdraw
        if self.settled or self.cancelling > Cancelling.WANTED:
            return
        self.cancelling = Cancelling.WANTED
        if self._cancel is not None:
            self._cancel()

    def settlement(self) -> asyncio.Future[None]:
        """Return a future that is done when the call has settled."""
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
            if self.settled:
                self._waiter.set_result(None)
        return self._waiter

    def settle(self) -> None:
        """Note that the settling event has been applied."""
        self.settled = True
        self._cancel = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def concerns(self, action: str, committers: Container[str]) -> bool:
        """Tell whether it executes an action, undoes one of its executions, or commits them."""
        entry = self.entry or self.undoes
        executes = entry is not None and entry.contract.action == action
        return executes or self.commits in committers


async def settle(calls: Iterable[Call], *, withdraw: bool = True) -> None:
    """Ask calls to cancel and wait until each has its real outcome.

    Args:
        calls: The calls.
        withdraw: Whether what succeeds is about to be undone.
    """
    calls = list(calls)
    for call in calls:
        call.ask_to_cancel(withdraw=withdraw)
    await settled(calls)


async def settled(calls: Iterable[Call]) -> None:
    """Wait until each of some calls has its real outcome."""
    waiting = [call.settlement() for call in calls if not call.settled]
    if waiting:
        await asyncio.wait(waiting)
