"""Unwinds, in the reference: what runs settles, the rest is undone, one unwind after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from tests.model.reference_calls import Calls, World
from tests.model.reference_ledger import Call, Entry, Err, Planned, Scope, Turn, Undetermined


class Unwinds(Calls):
    """The unwinds of one run."""

    def __init__(self, world: World, place: str) -> None:
        super().__init__(world, place)
        self.turns: list[Turn] = []

    def unwind(
        self,
        scope: Scope,
        trigger: str,
        *,
        only: str | None = None,
        wanted: Callable[[Entry], bool] = lambda entry: True,
        stop: bool = False,
        ending: bool = False,
    ) -> Coroutine[Any, Any, list[Planned]]:
        """Settle what runs in a unit, then undo what is open there; return the plan.

        It has its turn from now on: after those that began before it.
        """
        if self.closing and not ending:
            raise Err("app/UnwindInProgress")
        covers = self.covers(scope, ending=ending)
        return self._unwind(self.announce(scope), covers, trigger, only, wanted, stop)

    async def _unwind(
        self,
        turn: Turn,
        covers: Callable[[Scope], bool],
        trigger: str,
        only: str | None,
        wanted: Callable[[Entry], bool],
        stop: bool,
    ) -> list[Planned]:
        async with self.alone(turn):
            self.unwinding.append(covers)
            settled = await self.settle(covers, only)
            while deciding := self.deciding(covers):
                settled = True
                await asyncio.wait([call.done for call in deciding])
            plan = self.ledger.plan(
                lambda e: covers(e.scope) and wanted(e) and (only is None or e.kind == only)
            )
            self.ledger.planned += plan
            self.edge |= settled and not plan
            await self._execute(plan, trigger, stop)
            self.unwinding.remove(covers)
        return plan

    async def _execute(self, plan: list[Planned], trigger: str, stop: bool) -> None:
        """Undo one after another; what a committer seals meanwhile is not in the plan any more."""
        stopped = False
        for planned in list(plan):
            entry = planned.entry
            if entry.state not in ("open", "in_doubt"):
                if entry.state != "sealed":
                    raise Undetermined("an entry is undone by hand and by an unwind")
                plan.remove(planned)
                self.ledger.planned.remove(planned)
            elif entry.kind == "final":
                planned.verdict = entry.state = "irreversible"
            elif stopped:
                planned.verdict = entry.state = "not_run"
            else:
                done = await self.undo(entry, trigger)
                planned.verdict = entry.state = "undone" if done else "failed"
                stopped = stop and not done

    def covers(self, scope: Scope, *, ending: bool = False) -> Callable[[Scope], bool]:
        """What an unwind of a unit covers: not the handlers at work inside, but at the end."""

        def inside(other: Scope) -> bool:
            if not other.inside(scope):
                return False
            apart = [h for h in self.handlers if not ending and not scope.inside(h)]
            return not any(other.inside(handler) for handler in apart)

        return inside

    def deciding(self, covers: Callable[[Scope], bool]) -> list[Call]:
        """Calls outside of a unit after which less may be open in it: committers, undos by hand."""
        return [
            call
            for call in self.flight
            if not covers(call.scope)
            and (
                (call.reverts is not None and covers(call.reverts.scope))
                or any(
                    e.stands and covers(e.scope) and e.sealed_by(call.commits, call.started)
                    for e in self.ledger.entries
                    if call.commits is not None
                )
            )
        ]

    def announce(self, scope: Scope) -> Turn:
        """Take the next turn among the unwinds in, around or inside a unit."""
        ended = [t.ended for t in self.turns if t.scope.inside(scope) or scope.inside(t.scope)]
        self.turns.append(Turn(scope, ended))
        return self.turns[-1]

    @asynccontextmanager
    async def alone(self, turn: Turn) -> AsyncIterator[None]:
        """Wait for one's turn, and end it."""
        if waiting := [ended for ended in turn.rivals if not ended.done()]:
            await asyncio.wait(waiting)
        try:
            yield
        finally:
            self.turns.remove(turn)
            if not turn.ended.get_loop().is_closed():
                turn.ended.set_result(None)

    def needed(self, covers: Callable[[Scope], bool]) -> bool:
        """Whether there is anything to settle or to undo in a unit."""
        running = any((c.named or c.child is not None) and covers(c.scope) for c in self.flight)
        open_ = bool(self.ledger.plan(lambda e: covers(e.scope)))
        return running or open_ or bool(self.deciding(covers))

    async def settle(
        self,
        covers: Callable[[Scope], bool],
        only: str | None = None,
        *,
        withdraw: bool = True,
        named: bool = False,
    ) -> bool:
        """Ask what runs to cancel, and wait until all of it has settled."""
        calls = [
            c
            for c in self.flight
            if (c.named or (c.child is not None and not named))
            and covers(c.scope)
            and (only is None or self._concerns(c, only))
        ]
        for call in calls:
            self.ask(call, withdraw=withdraw)
        for call in calls:
            await asyncio.wait([call.done])
        return bool(calls)

    def _concerns(self, call: Call, kind: str) -> bool:
        entry = call.entry or call.reverts
        return (entry is not None and entry.kind == kind) or call.commits == kind

    async def undo(self, entry: Entry, trigger: str) -> bool:
        """Run the undo of an entry; tell whether it was undone."""
        entry.state = "undoing"
        form = entry.undo_name.removeprefix("undo_")
        place = f"?{self.place}" if form == "nothing" else entry.label
        if form == "context":
            form = f"context {'unknown' if entry.doubt else 'completed'} {trigger}"
        call = Call(f"undo {place}", self.root, f"undo {place} {form}", named=False)
        behaviour = "ok" if form == "nothing" else entry.undo
        call.flaky = behaviour == "flaky"
        call.outcome = "ok" if call.flaky else behaviour
        self.flight.append(call)
        while not call.done.done():
            await asyncio.wait([call.done])
        return call.error is None
