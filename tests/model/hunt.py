"""Makes programs from a seed, hunts for one that a server gets wrong, and makes it small."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.model.generate import programs
from tests.model.lab import Lab, Mismatch
from tests.model.program import Program, text
from tests.model.reference import expected

BATCH = 34
SHRINK_FOR = 240.0

_ANY: dict[str, Any] = {
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


def batches(number: int, count: int) -> Iterator[tuple[int, list[Program], int]]:
    """Make batches of programs.

    Args:
        number: The seed; with the batch's own number it decides the batch.
        count: How many programs.

    Yields:
        The seed of the batch, its programs, and the workflow cache's size: every third has none.
    """
    for index in range(-(-count // BATCH)):
        own = number * 100_000 + index
        size = min(BATCH, count - index * BATCH)
        yield own, generated(own, size), 0 if index % 3 == 1 else 1000


def generated(number: int, count: int) -> list[Program]:
    """Make programs from a seed."""
    found: list[Program] = []

    @seed(number)
    @settings(max_examples=count, phases=[Phase.generate], **_ANY)
    @given(programs())
    def collect(program: Program) -> None:
        found.append(program)

    collect()
    return found


def shrunk(
    number: int, count: int, bad: Program, judge: Callable[[Program], str]
) -> tuple[Program, str] | None:
    """Make a program that is judged bad as small as Hypothesis can.

    Args:
        number: The seed that made it.
        count: How many programs that seed made.
        bad: The program.
        judge: Says what is wrong with a program.
    """
    good = [program for program in generated(number, count) if program != bad]
    until = time.monotonic() + SHRINK_FOR
    found: list[tuple[Program, str]] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
        **_ANY,
    )
    @given(programs())
    def check(program: Program) -> None:
        if program in good or time.monotonic() > until:
            return
        if what := judge(program):
            found.append((program, what))
            raise AssertionError(what)

    try:
        check()
    except BaseException as err:
        if not found:
            raise RuntimeError("the program was not made again") from err
    return min(found, key=lambda pair: len(text(pair[0])), default=None)


async def small(lab: Lab, number: int, count: int, cache: int, mismatch: Mismatch) -> Mismatch:
    """Make the program of a mismatch small, on the same server."""
    loop = asyncio.get_running_loop()

    def wait_for(work: Awaitable[list[Mismatch]]) -> list[Mismatch]:
        return asyncio.run_coroutine_threadsafe(_await(work), loop).result()

    def judge(program: Program) -> str:
        if expected(program) is None:
            return ""
        found = wait_for(lab.compare([program], cache=cache))
        return "\n".join(each.what for each in found)

    least = await asyncio.to_thread(shrunk, number, count, mismatch.program, judge)
    return mismatch if least is None else Mismatch(*least)


async def _await(work: Awaitable[list[Mismatch]]) -> list[Mismatch]:
    return await work
