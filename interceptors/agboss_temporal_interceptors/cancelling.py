"""Cancelling a named call: it settles first, then whoever awaits it sees the cancel (rule R4)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from agboss_temporal import _compat
from agboss_temporal.call import Call, Cancelling
from agboss_temporal.run import RESTLESS_TURNS


class Canceller:
    """Sends the cancels of one run's named calls, and lets their awaiters go in time.

    Commands must come in the same order in every replay, but a ``TaskGroup`` cancels its tasks in
    the order of a set. So cancels are collected for one turn of the loop and sent oldest first.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Callable[[], object]]] = []
        self._releases: list[Callable[[], None]] = []

    def attach(
        self,
        call: Call,
        handle: Any,
        observation: _compat.Observation,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Replace the handle's ``cancel`` by one that lets the call settle.

        Returning ``False`` from it tells asyncio that the handle was not cancelled, so that the
        awaiting task itself is, as soon as the handle settles. A cancel that comes again, on a
        later turn, is obeyed at once: the awaiter is let go, and the call settles without it. So
        is a cancel after which the loop does not come to rest: a level-triggered scope that
        waits, turn by turn, for its task to end.
        """
        handle_of = weakref.ref(handle)  # It holds what stands here.

        def send_once(msg: Any | None) -> None:
            call.cancelling = Cancelling.SENT
            own: Any = handle_of()
            if own is not None:
                type(own).cancel(own, msg)

        def release_soon() -> None:
            # Behind the handle's own step, which sends the request to the server.
            loop.call_soon(observation.release)

        def settling_cancel(msg: Any | None = None) -> bool:
            own = handle_of()
            if own is None or own.done():
                return False
            if call.cancelling is Cancelling.SENT:
                self._enqueue(call, release_soon, loop)
            elif call.cancelling < Cancelling.ASKED:
                call.cancelling = Cancelling.ASKED
                self._enqueue(call, lambda: send_once(msg), loop)
                self._watch(observation.release, loop)
            return False

        handle.cancel = settling_cancel

    def _enqueue(
        self, call: Call, step: Callable[[], object], loop: asyncio.AbstractEventLoop
    ) -> None:
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((call.ordinal, step))

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for _, step in sorted(waiting, key=lambda each: each[0]):
            step()

    def _watch(self, release: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        if not self._releases:
            loop.call_soon(self._let_go_if_restless, loop, 0)
        self._releases.append(release)

    def _let_go_if_restless(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        if turns < RESTLESS_TURNS and _compat.has_more_to_do(loop):
            loop.call_soon(self._let_go_if_restless, loop, turns + 1)
            return
        releases, self._releases = self._releases, []
        if turns == RESTLESS_TURNS:
            for release in releases:
                release()
