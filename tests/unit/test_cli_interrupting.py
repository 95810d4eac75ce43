"""A command that waits ends at once when it is interrupted."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from agboss_temporal.cli import interrupting


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    """Let an interrupt be what it is outside of a test runner."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_unseen() -> None:
    """Interrupt the process without waking its main thread, as at the worst moment."""
    time.sleep(0.1)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


async def waits() -> None:
    threading.Thread(target=interrupt_unseen).start()
    await asyncio.sleep(60)


def test_an_interrupt_that_no_system_call_sees_is_obeyed_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupting.run(waits())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


async def cleans_up_forever() -> None:
    try:
        await waits()
    finally:
        await waits()


def test_a_second_interrupt_does_not_wait_for_the_cleaning_up() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupting.run(cleans_up_forever())


def test_what_blocks_the_loop_is_interrupted_as_ever() -> None:
    """The first interrupt cancels, the second one interrupts."""

    async def blocks() -> None:
        for _ in range(2):
            threading.Thread(target=interrupt_unseen).start()
            time.sleep(0.3)  # noqa: ASYNC251
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        interrupting.run(blocks())


async def test_outside_of_the_main_thread_it_is_run_all_the_same() -> None:
    async def answers() -> int:
        return 7

    assert await asyncio.to_thread(lambda: interrupting.run(answers())) == 7


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def seen() -> object:
        signal.raise_signal(signal.SIGINT)
        return signal.getsignal(signal.SIGINT)

    assert interrupting.run(seen()) == signal.SIG_IGN
