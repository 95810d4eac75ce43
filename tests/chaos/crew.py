"""The workers, and whoever kills them."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Crew:
    """Some worker processes that do the same work.

    Args:
        arguments: What `worker_main` is given, for each of them.
    """

    def __init__(self, arguments: Sequence[tuple[str, ...]]) -> None:
        self._arguments = arguments
        self._hired = 0
        self._workers: list[Process] = []
        self.killed = 0

    async def __aenter__(self) -> Crew:
        try:
            for _ in self._arguments:
                await self._hire()
        except BaseException:
            await self._dismiss()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._dismiss()

    async def keep_killing(self, every: float, seconds: float) -> None:
        """Kill the oldest worker again and again, and put a new one in its place."""
        for _ in range(int(seconds / every)):
            await asyncio.sleep(every)
            await self._kill(self._workers[0])
            self.killed += 1
            await self._hire()

    async def _hire(self) -> None:
        arguments = self._arguments[self._hired % len(self._arguments)]
        self._hired += 1
        command = (sys.executable, "-m", "tests.chaos.worker_main", *arguments)
        worker = await asyncio.create_subprocess_exec(*command, stdin=PIPE, cwd=ROOT)
        self._workers.append(worker)

    async def _kill(self, worker: Process) -> None:
        if worker.returncode is not None:
            raise RuntimeError(f"a worker ended by itself with {worker.returncode}")
        worker.kill()
        await worker.wait()
        self._workers.remove(worker)

    async def _dismiss(self) -> None:
        for worker in self._workers:
            if worker.returncode is None:
                worker.kill()
        await asyncio.gather(*(worker.wait() for worker in self._workers))
        self._workers.clear()
