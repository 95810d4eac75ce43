"""The calls of a run, in the reference: how they start, settle, and are undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from tests.model.reference_ledger import (
    Call,
    Entry,
    Err,
    Ledger,
    Scope,
    Undetermined,
)


class World(Protocol):
    """What the runs of a program share."""

    def did(self, what: str) -> None: ...

    def send(self, to: object, message: Callable[[], None]) -> None: ...


RAISED = {
    "raise_before": "app/Broke",
    "raise_after": "app/Broke",
    "declined": "app/Declined",
    "flaky": "app/Flaky",
    "fails": "app/CannotUndo",
    "fails_after": "app/CannotUndo",
}
EFFECTIVE = ("ok", "raise_after", "lost_after", "fails_after")


class Calls:
    """The calls of one run."""

    def __init__(self, world: World, place: str) -> None:
        self.world = world
        self.place = place
        self.root = Scope()
        self.ledger = Ledger()
        self.flight: list[Call] = []
        self.unwinding: list[Callable[[Scope], bool]] = []
        self.handlers: dict[Scope, asyncio.Task[None]] = {}
        self.ordinal = 0
        self.named_calls = 0
        self.closing = False
        self.status = ""
        self.started_now = False
        self.edge = False

    # -- on the way forward

    def begin(self, call: Call, entry: Entry | None = None) -> Call:
        """Start a named call; while its unit unwinds it is refused."""
        self.started_now = True
        if any(refuses(call.scope) for refuses in self.unwinding):
            raise Err("app/UnwindInProgress")
        self.named_calls += 1
        if entry is not None:
            entry.told = entry.scope
            self.ledger.entries.append(entry)
            call.entry = entry
        if call.commits is not None:
            self.ledger.tell()
        self.flight.append(call)
        return call

    async def settled(self, call: Call) -> None:
        """Await a named call: a cancel is delivered when it has settled, a second one at once."""
        asked = False
        while not call.done.done():
            try:
                await asyncio.wait([call.done])
            except asyncio.CancelledError:
                if call.cancelling:
                    raise
                asked = True
                self.ask(call)
        if asked:
            raise asyncio.CancelledError
        if call.error is not None:
            raise call.error
        if call.withdrawn and call.entry is not None:
            raise Err("cancelled", cancelled=True)

    async def noted(self, call: Call) -> None:
        """Await a call that no contract names: as Temporal does, which lets go of it at once."""
        self.flight.append(call)
        try:
            await asyncio.wait([call.done])
        except asyncio.CancelledError:
            if call.done.done():
                raise
            call.cancelling = True
            if not call.sent:
                self.flight.remove(call)
            raise Err("activity/cancelled", cancelled=True) from None
        if call.error is not None:
            raise call.error

    def ask(self, call: Call, *, withdraw: bool = False) -> None:
        """Ask a call to cancel. One that was never sent has settled with that."""
        call.withdrawn |= withdraw
        if call.cancelling or call.done.done():
            return
        call.cancelling = True
        if call.child is not None:
            if not call.sent:
                raise Undetermined("a child is cancelled before it started")
            call.child()
        elif not call.sent:
            self.flight.remove(call)
            if call.entry is not None:
                call.entry.state = "no_effect"
            if call.reverts is not None and call.reverts.state == "undoing":
                self.ledger.reopen(call.reverts)
            call.error = Err("activity/cancelled", cancelled=True)
            call.done.set_result(None)

    def let_go(self, call: Call) -> None:
        """The activity of a call ends as the program says."""
        if call.flaky and call.attempts == 1:
            call.attempts += 1
            return
        if call.cancelling and call.on_cancel != "ignore":
            if call.on_cancel == "obey_after":
                self.world.did(call.effect)
            self.fail(call, Err("activity/cancelled", cancelled=True), "cancelled")
            return
        if call.outcome in EFFECTIVE:
            self.world.did(call.effect)
        if call.outcome == "ok":
            self.succeed(call)
        elif call.outcome.startswith("lost"):
            self.fail(call, Err("activity/timeout"), "timed_out")
        elif call.outcome == "unstarted":
            self.fail(call, Err("activity/timeout"), None)
        else:
            known = call.outcome == "declined" and call.entry is not None
            error = Err(f"activity/{RAISED[call.outcome]}")
            self.fail(call, error, None if known else "raised")

    def succeed(self, call: Call) -> None:
        self.flight.remove(call)
        if call.entry is not None:
            self.ledger.complete(call.entry)
        if call.commits is not None:
            self.ledger.seal(call.commits, call.started)
        if call.reverts is not None and call.reverts.state == "undoing":
            call.reverts.state = "undone"
        call.done.set_result(None)

    def fail(self, call: Call, error: Err, doubt: str | None) -> None:
        self.flight.remove(call)
        if call.entry is not None:
            if doubt is None:
                call.entry.state = "no_effect"
            else:
                self.ledger.doubt(call.entry, doubt)
        if call.commits is not None and doubt is not None:
            self.ledger.committers_in_doubt.append((call.commits, doubt))
        if call.reverts is not None and call.reverts.state == "undoing":
            self.ledger.reopen(call.reverts)
        call.error = error
        call.done.set_result(None)

    def rest(self) -> None:
        """Nothing moves any more, for now.

        An unwind that ends as soon as the last call has settled races with the code that awaited
        that call: whether a call that it starts is refused is left open.
        """
        if self.edge and self.started_now:
            raise Undetermined("a call is started just as an unwind ends")
        self.edge = self.started_now = False
        for call in self.flight:
            call.sent = True

    def leave(self, scope: Scope) -> None:
        """A unit ends: what it holds belongs to the nearest one that is still open."""
        scope.left = True
        held: list[Entry | Call] = [*self.ledger.entries, *self.flight]
        for each in held:
            if each.scope is scope:
                each.scope = scope.standing
