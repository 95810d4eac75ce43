"""One run of a program in the reference: its code, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.model import program as p
from tests.model.reference_calls import Calls, World
from tests.model.reference_ledger import Call, Entry, Err, Scope, Undetermined, protected


class Continue(BaseException):  # noqa: N818
    """The run continues as new."""


class Code(Calls):
    """What the code of a run does: the nodes of its program."""

    def __init__(
        self,
        world: World,
        program: p.Program,
        place: str,
        start: Callable[[p.Child, str], Run],
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
        call.child = run.cancel

        def ended(error: str) -> None:
            if not call.sent:
                raise Undetermined("a child ends before it is seen to start")
            if call not in self.flight:
                return
            if not error:
                self.succeed(call)
                return
            cancelled = error == "cancelled"
            doubt = "cancelled" if cancelled else "raised"
            self.fail(call, Err(f"child/{error}", cancelled=cancelled), doubt)

        run.on_end = ended
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
        before = len(self.ledger.planned)
        cancelled = await protected(
            self.unwind(scope.standing, "explicit", only=node.kind, stop=self.stops)
        )
        if cancelled:
            raise asyncio.CancelledError
        if any(p.verdict not in ("undone", "irreversible") for p in self.ledger.planned[before:]):
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
            raise NotImplementedError

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


class Run(Code):
    """A run from its start to its end."""

    status = ""
    error = ""
    cancel_requested = False
    on_end: Callable[[str], None] = staticmethod(lambda error: None)
    generation = 0
    continued = False
    task: asyncio.Task[None]

    def launch(self) -> None:
        """Start it."""
        self.task = asyncio.ensure_future(self._live())

    def cancel(self) -> None:
        """Request its cancellation."""
        if not self.cancel_requested and not self.status:
            self.cancel_requested = True
            self.task.cancel()

    @property
    def prefix(self) -> str:
        return self.place + (f"g{self.generation}" if self.generation else "")

    async def _live(self) -> None:
        bodies = (self.program.main, *self.program.further)
        try:
            await self.body(bodies[self.generation], self.prefix + "m", self.root)
            if self.generation < len(self.program.further):
                await self._continue()
            await self._return()
        except Continue:
            self._close("CONTINUED_AS_NEW", "")
        except Undetermined:
            raise
        except (Exception, asyncio.CancelledError) as err:
            await self._fail(self._first(err))

    def _first(self, error: BaseException) -> BaseException:
        """The error that counts: of a group, the first leaf."""
        if isinstance(error, BaseExceptionGroup):
            if not self.named_calls:
                raise Undetermined("a group fails in a run without named calls")
            return self._first(error.exceptions[0])
        return error

    async def _continue(self) -> None:
        """Running calls settle, nothing is undone, what is open goes along."""
        self.closing = True
        self.unwinding.append(self.root)
        if await protected(self._settle_named()):
            raise asyncio.CancelledError
        raise Continue

    async def _settle_named(self) -> None:
        async with self.lock:
            await self.settle(self.root, withdraw=False, named=True)

    def carried(self) -> list[Entry]:
        """What the next run takes over, in the order in which it settled."""
        return sorted((e for e in self.ledger.entries if e.stands), key=lambda e: e.sequence)

    def adopt(self, entries: Sequence[Entry]) -> None:
        """Take over what the run before left open."""
        for number, old in enumerate(entries, -len(entries)):
            new = Entry(old.kind, old.label, old.undo, number, old.key, self.root)
            self.ledger.entries.append(new)
            self.named_calls += 1
            if old.doubt:
                self.ledger.doubt(new, old.doubt)
            else:
                self.ledger.complete(new)

    async def _return(self) -> None:
        self.closing = True
        self.unwinding.append(self.root)
        await protected(self._idle())
        if self.program.policy != "allow" and self.ledger.uncommitted:
            before = len(self.ledger.planned)
            await protected(
                self.unwind(
                    self.root,
                    "node-failure",
                    wanted=lambda e: e.committer is not None,
                    stop=self.stops,
                    ending=True,
                )
            )
            if len(self.ledger.planned) > before or self.ledger.uncommitted:
                self.ledger.finish()
                self._close("FAILED", self._final("app/UncommittedActionError"))
                return
        self.ledger.finish()
        self._close("COMPLETED", "")

    async def _idle(self) -> None:
        async with self.lock:
            pass

    async def _fail(self, error: BaseException) -> None:
        kind, cancelled = "cancelled", True
        if isinstance(error, TimeoutError):
            kind, cancelled = "app/TimeoutError", False
        elif isinstance(error, Err):
            kind, cancelled = error.kind, error.cancelled
        cancelled = cancelled and self.cancel_requested
        trigger = "run-cancel" if cancelled else "node-failure"
        if kind in ("app/TimeoutError", "app/LimitExceededError"):
            trigger = "cap-breach"
        self.closing = True
        self.unwinding.append(self.root)
        await protected(self._idle())
        if self.program.policy != "failures" or trigger == "node-failure":
            await protected(self.unwind(self.root, trigger, stop=self.stops, ending=True))
        final = self._final(kind)
        if cancelled and final == kind:
            self._close("CANCELED", "cancelled")
        else:
            self._close("FAILED", final)

    def _final(self, kind: str) -> str:
        failed = "app/CompensationFailedError"
        return f"{failed}/{kind}" if self.ledger.leftovers and kind != failed else kind

    def _close(self, status: str, error: str) -> None:
        for entry in self.ledger.entries:
            if entry.state == "running" and status != "CONTINUED_AS_NEW":
                self.ledger.doubt(entry, "abandoned")
        self.status, self.error = status, error
        for call in self.flight:
            if call.child is not None:
                call.child()
        self.on_end(error)
