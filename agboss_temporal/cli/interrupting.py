"""Runs the coroutine of a command so that Ctrl-C ends it at once."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def run(command: Coroutine[Any, Any, T]) -> T:
    """Do as ``asyncio.run`` does, but let no Ctrl-C wait until the loop wakes by itself."""
    import asyncio

    return asyncio.run(_woken(command))


async def _woken(command: Coroutine[Any, Any, T]) -> T:
    """Have signals wake the loop.

    The handler of ``asyncio.run`` does not: a signal that comes when the loop has just decided to
    sleep would be handled at the next timer. The loop's own handler does, but cannot interrupt
    what blocks the loop, such as a question. So the loop listens, and that handler stays.
    """
    import asyncio
    import signal

    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        # Windows' loop is woken anyway; threads other than the main one are sent no signals.
        with suppress(RuntimeError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
            signal.signal(signal.SIGINT, handler)
    return await command
