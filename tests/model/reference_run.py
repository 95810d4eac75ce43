"""How a run ends, in the reference, and what its handlers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.model.reference_code import Code, kind_of
from tests.model.reference_ledger import (
    Entry,
    Err,
    Scope,
    Undetermined,
    left_behind,
    protected,
)


class Continue(BaseException):
    """The run continues as new."""


class Run(Code):
    """A run from its start to its end."""

    error = ""
    cancel_requested = False
    on_end: Callable[[str], None] = staticmethod(lambda error: None)
    generation = 0
    handled = 0
    ending: asyncio.Future[None] | None = None
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
            if not await self._ended():
                await self._return()
        except Continue:
            self._close("CONTINUED_AS_NEW", "")
        except Undetermined:
            raise
        except (Exception, asyncio.CancelledError) as err:
            if not await self._ended():
                await self._fail(self._first(err))

    async def _ended(self) -> bool:
        """If a signal handler has ended the run, wait until that is done."""
        if self.ending is not None:
            await protected(self._wait_for(self.ending))
        return self.ending is not None

    async def _wait_for(self, done: asyncio.Future[None]) -> None:
        await asyncio.wait([done])

    def _first(self, error: BaseException) -> BaseException:
        """The error that counts: of a group, the first leaf."""
        if isinstance(error, BaseExceptionGroup):
            if not self.named_calls:
                raise Undetermined("a group fails in a run without named calls")
            return self._first(error.exceptions[0])
        return error

    async def _continue(self) -> None:
        """Running calls settle, nothing is undone, what is open goes along."""
        if self.handlers:
            raise Undetermined("a run continues as new with a handler at work")
        self.closing = True
        self.unwinding.append(lambda scope: True)
        if await protected(self._settle_named()):
            raise asyncio.CancelledError
        raise Continue

    async def _settle_named(self) -> None:
        async with self.alone(self.announce(self.root)):
            await self.settle(lambda scope: True, withdraw=False, named=True)

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
        await self._quiet()
        if await self._ended():
            return
        uncommitted = self.ledger.uncommitted
        if self.program.policy != "allow" and uncommitted:
            self.ending = asyncio.get_running_loop().create_future()
            await self._stop_handlers()
            work = asyncio.ensure_future(
                self.unwind(
                    self.root,
                    "node-failure",
                    wanted=lambda e: e.committer is not None,
                    stop=self.stops,
                    ending=True,
                )
            )
            await protected(work)
            await self._stop_handlers()
            if work.result() or any(e.state != "sealed" for e in uncommitted):
                self.ledger.finish()
                self._close("FAILED", self._final("app/UncommittedActionError"))
                return
        self.ledger.finish()
        self._close("COMPLETED", "")

    async def _quiet(self) -> None:
        """No call starts any more; an unwind that is at work ends."""
        self.closing = True
        self.unwinding.append(lambda scope: True)
        await self._idle()

    async def _idle(self) -> None:
        while self.turns:
            await protected(self._wait_for_all([turn.ended for turn in self.turns]))

    async def _wait_for_all(self, done: Sequence[asyncio.Future[None]]) -> None:
        await asyncio.wait(done)

    async def _fail(self, error: BaseException, own: Scope | None = None) -> None:
        """The run fails or is cancelled; ``own`` is the unit of the handler that failed it."""
        self.ending = asyncio.get_running_loop().create_future()
        kind = kind_of(error)
        is_cancel = isinstance(error, asyncio.CancelledError) or (
            isinstance(error, Err) and error.cancelled
        )
        trigger = "run-cancel" if is_cancel and self.cancel_requested else "node-failure"
        if kind in ("app/TimeoutError", "app/LimitExceededError"):
            trigger = "cap-breach"
        await self._quiet()
        listed = self.program.policy != "failures" or trigger == "node-failure"
        unwinds = listed and self.needed(lambda scope: True)
        if unwinds:
            await self._stop_handlers()
        if own is not None:
            await self._undo_handler(own)
        if unwinds:
            await protected(self.unwind(self.root, trigger, stop=self.stops, ending=True))
            await self._stop_handlers()
        await self._idle()
        final = self._final(kind)
        # The cancel may have come only while it unwound: the trigger is what it was.
        if is_cancel and self.cancel_requested and final == kind:
            self._close("CANCELED", "cancelled")
        else:
            self._close("FAILED", final)
        self.ending.set_result(None)

    def _final(self, kind: str) -> str:
        failed = "app/CompensationFailedError"
        return f"{failed}/{kind}" if self.ledger.leftovers and kind != failed else kind

    # -- handlers

    def call(self, which: int, tell: Callable[[str], None] | None) -> None:
        """A handler is called: an update's, which tells its caller, or a signal's."""
        place = f"{self.prefix}h{self.handled}"
        self.handled += 1
        own = Scope(self.root)
        work = self._update(which, place, own, tell) if tell else self._signal(which, place, own)
        self.handlers[own] = asyncio.ensure_future(work)

    async def _handle(self, which: int, place: str, own: Scope) -> None:
        bodies = self.program.handlers
        if bodies:
            await self.body(bodies[which % len(bodies)], place, own)

    async def _update(
        self, which: int, place: str, own: Scope, tell: Callable[[str], None]
    ) -> None:
        answer = place
        try:
            await self._handle(which, place, own)
            self.ledger.finish(own, keep_uncommitted=True)
        except Undetermined:
            raise
        except (Exception, asyncio.CancelledError) as err:
            answer = kind_of(self._first(err))
            if await self._undo_handler(own):
                answer = f"app/CompensationFailedError/{answer}"
        finally:
            self._leave_handler(own)
        if self.status:
            raise Undetermined("an update ends as its run closes")
        tell(answer)

    async def _signal(self, which: int, place: str, own: Scope) -> None:
        try:
            await self._handle(which, place, own)
        except Undetermined:
            raise
        except (Exception, asyncio.CancelledError) as err:
            if self.ending is None:
                await self._fail(self._first(err), own)
            else:
                await self._undo_handler(own)
        finally:
            self._leave_handler(own)

    def _leave_handler(self, own: Scope) -> None:
        self.leave(own)
        del self.handlers[own]

    async def _undo_handler(self, own: Scope) -> bool:
        """Undo what a handler did; tell whether something stays."""
        if self.status or not self.needed(lambda scope: scope.inside(own)):
            return False
        work = asyncio.ensure_future(self.unwind(own, "handler", stop=self.stops, ending=True))
        await protected(work)
        return left_behind(work.result())

    async def _stop_handlers(self) -> None:
        own = asyncio.current_task()
        others = [task for task in self.handlers.values() if task is not own]
        # A handler whose own unwind ends just now is cancelled in it, or after it.
        self.started_now |= bool(others)
        for task in others:
            task.cancel()
        if others:
            await protected(asyncio.wait(others))

    def _close(self, status: str, error: str) -> None:
        for entry in self.ledger.entries:
            if entry.state == "running" and status != "CONTINUED_AS_NEW":
                self.ledger.doubt(entry, "abandoned")
        if self.status:
            return
        self.status, self.error = status, error
        for call in self.flight:
            if call.child is not None:
                call.child()
        self.on_end(error)
