"""What the code of a run does, in the reference: the nodes of its program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from tests.model import program as p
from tests.model.reference_calls import World
from tests.model.reference_ledger import (
    Call,
    Entry,
    Err,
    Scope,
    Undetermined,
    left_behind,
    protected,
)
from tests.model.reference_unwinds import Unwinds


def kind_of(error: BaseException) -> str:
    """Name a failure as clients see it."""
    if isinstance(error, Err):
        return error.kind
    if isinstance(error, BaseExceptionGroup):
        return "app/ExceptionGroup"
    return "app/TimeoutError" if isinstance(error, TimeoutError) else "cancelled"


class Started(Protocol):
    """A child that was started."""

    on_end: Callable[[str], None]

    def cancel(self) -> None: ...


class Code(Unwinds):
    """The code of one run."""

    def __init__(
        self,
        world: World,
        program: p.Program,
        place: str,
        start: Callable[[p.Child, str], Started],
    ) -> None:
        super().__init__(world, place)
        self.program = program
        self.start = start
        self.values: list[Entry] = []
        self.limits: list[asyncio.Timeout] = []

    async def body(self, nodes: Sequence[p.Node], place: str, scope: Scope) -> None:
        for index, node in enumerate(nodes):
            do = getattr(self, f"do_{type(node).__name__.lower()}")
            await do(node, f"{place}.{index}", scope)

    # -- calls

    def entry(self, kind: str, place: str, undo: str, scope: Scope) -> Entry:
        return Entry(kind, place, undo, self.ordinal, self.ordinal, scope)

    async def do_act(self, node: p.Act, place: str, scope: Scope) -> None:
        self.ordinal += 1
        call = Call(f"do {place}", scope.standing, f"do {place}", node.outcome, node.on_cancel)
        entry = self.entry(node.kind, place, node.undo, scope.standing)
        await self.settled(self.begin(call, entry))
        entry.touched = node.touch
        if node.kind in p.RESULT_KINDS:
            self.values.append(entry)

    async def do_commit(self, node: p.Commit, place: str, scope: Scope) -> None:
        self.ordinal += 1
        what = f"commit {place}"
        call = Call(what, scope.standing, what, node.outcome, node.on_cancel, commits=node.name)
        await self.settled(self.begin(call))

    async def do_note(self, node: p.Note, place: str, scope: Scope) -> None:
        self.ordinal += 1
        await self.noted(Call(f"note {place}", scope, f"note {place}", named=False))

    async def do_revert(self, node: p.Revert, place: str, scope: Scope) -> None:
        if not self.values:
            return
        self.ordinal += 1
        given = self.values[-1 - node.back % len(self.values)]
        form = "touched" if given.touched else "result"
        call = Call(f"undo {given.label}", scope.standing, f"undo {given.label} {form}")
        call.outcome, call.is_revert = given.undo, True
        self.begin(call)
        call.reverts = self.closed_by(given)
        if call.reverts is not None:
            call.reverts.state = "undoing"
        await self.settled(call)

    def closed_by(self, given: Entry) -> Entry | None:
        """The entry whose object an undo was given, else the only one with that undo.

        What was recorded for an entry that is closed already closes no other.
        """
        found = [
            e
            for e in self.ledger.entries
            if e.undo_name == "undo_result" and e.state in ("open", "in_doubt")
        ]
        if given in found:
            return given
        return found[0] if given.touched and len(found) == 1 else None

    async def do_child(self, node: p.Child, place: str, scope: Scope) -> None:
        self.ordinal += 1
        call = Call(f"child {place}", scope.standing, "", named=node.declared)
        entry = self.entry("child", place, node.undo, scope.standing) if node.declared else None
        named_before = self.named_calls
        self.begin(call, entry)
        if not node.declared:
            self.named_calls = named_before
        run = self.start(node, place)
        call.child = partial(self.world.send, run, run.cancel)

        def ended(error: str) -> None:
            if not call.sent:
                raise Undetermined("a child ends before it is seen to start")
            if call not in self.flight or self.status:
                return
            if not error:
                self.succeed(call)
                return
            cancelled = error == "cancelled"
            doubt = "cancelled" if cancelled else "raised"
            self.fail(call, Err(f"child/{error}", cancelled=cancelled), doubt)

        run.on_end = lambda error: self.world.send(self, partial(ended, error))
        await self.settled(call)
        if entry is not None:
            self.values.append(entry)

    # -- the code around them

    async def do_raise(self, node: p.Raise, place: str, scope: Scope) -> None:
        limit = node.error == "Limit"
        raise Err("app/LimitExceededError" if limit else f"app/{node.error}")

    async def do_hang(self, node: p.Hang, place: str, scope: Scope) -> None:
        await asyncio.Event().wait()

    async def do_compensate(self, node: p.Compensate, place: str, scope: Scope) -> None:
        work = asyncio.ensure_future(
            self.unwind(scope.standing, "explicit", only=node.kind, stop=self.stops)
        )
        if await protected(work):
            raise asyncio.CancelledError
        if left_behind(work.result()):
            raise Err("app/CompensationFailedError")

    async def do_try(self, node: p.Try, place: str, scope: Scope) -> None:
        try:
            await self.body(node.body, place, scope)
        except Exception as err:
            if isinstance(err, Undetermined):
                raise
        else:
            return
        await self.body(node.handler, f"{place}x", scope)

    async def do_if(self, node: p.If, place: str, scope: Scope) -> None:
        await self.body(node.other if len(self.values) % 2 else node.then, place, scope)

    async def do_loop(self, node: p.Loop, place: str, scope: Scope) -> None:
        for turn in range(node.times):
            await self.body(node.body, f"{place}@{turn}", scope)

    async def do_fan(self, node: p.Fan, place: str, scope: Scope) -> None:
        named = [(branch, f"{place}{chr(ord('a') + n)}") for n, branch in enumerate(node.branches)]
        if node.how == "gather":
            await asyncio.gather(*(self.body(*each, scope) for each in named))
        elif node.how == "group":
            async with asyncio.TaskGroup() as group:
                for each in named:
                    group.create_task(self.body(*each, scope))
        else:
            await self.join([self.branch(*each) for each in named], scope)

    def branch(
        self, nodes: Sequence[p.Node], place: str
    ) -> Callable[[Scope], Coroutine[Any, Any, None]]:
        """A branch of a join, to be run in a unit."""
        return lambda scope: self.body(nodes, place, scope)

    async def join(
        self, branches: Sequence[Callable[[Scope], Coroutine[Any, Any, None]]], scope: Scope
    ) -> None:
        """All of the branches succeed, or all that any of them did is undone."""
        whole = Scope(scope.standing)
        failures: list[BaseException] = []
        first = asyncio.Event()

        async def branch(body: Callable[[Scope], Coroutine[Any, Any, None]], own: Scope) -> None:
            try:
                await body(own)
                self.leave(own)
            except Undetermined:
                raise
            except (Exception, asyncio.CancelledError) as err:
                failures.append(err)
                first.set()

        scopes = [Scope(whole) for _ in branches]
        tasks = [
            asyncio.ensure_future(branch(*each)) for each in zip(branches, scopes, strict=True)
        ]
        watch = asyncio.ensure_future(first.wait())
        every = asyncio.ensure_future(asyncio.wait(tasks))
        cancelled = cut = False
        try:
            await asyncio.wait([watch, every], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            cancelled = True
        watch.cancel()
        error = None if cancelled else failures[0] if failures else None
        if cancelled or error is not None:
            for task in tasks:
                task.cancel()
            cut = await protected(asyncio.wait(tasks))
            cut = await self.undo_unit(whole, "join") or cut
        for each in (*scopes, whole):
            self.leave(each)
        if cancelled or cut:
            raise asyncio.CancelledError
        if error is not None:
            raise Err(f"app/JoinFailedError/{kind_of(error)}")

    async def do_unit(self, node: p.Unit, place: str, scope: Scope) -> None:
        own = Scope(scope.standing)
        cut = False
        try:
            await self.body(node.body, place, own)
            if node.seal:
                self.ledger.finish(own)
        except Undetermined:
            raise
        except asyncio.CancelledError:
            await self.undo_unit(own, "explicit")
            raise
        except Exception:
            cut = await self.undo_unit(own, "explicit")
            if cut:
                raise asyncio.CancelledError from None
            raise
        finally:
            self.leave(own)

    async def undo_unit(self, scope: Scope, trigger: str) -> bool:
        """Undo a unit, unless the run's end does it; tell whether a cancel came meanwhile."""
        if self.closing or not self.needed(self.covers(scope)):
            return False
        return await protected(self.unwind(scope, trigger, stop=self.stops))

    async def do_limit(self, node: p.Limit, place: str, scope: Scope) -> None:
        async with asyncio.timeout(None) as limit:
            self.limits.append(limit)
            try:
                await self.body(node.body, place, scope)
            finally:
                self.limits.remove(limit)

    @property
    def stops(self) -> bool:
        return self.program.policy == "stop"

    def expire(self, which: int) -> None:
        """A time limit runs out."""
        limit = self.limits[which % len(self.limits)] if self.limits else None
        if limit is not None and not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())
