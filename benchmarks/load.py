"""Runs orders on the workers, by turns, and measures how fast and at what CPU."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from temporalio.client import Client, WorkflowFailureError

from benchmarks.shape import ORDER, Order, Receipt
from benchmarks.variants import VARIANTS, Variant, rotated
from benchmarks.worker import WorkerProcess

Path = Literal["success", "failure"]

PATHS: Final[tuple[Path, ...]] = ("success", "failure")

WARM_UP: Final = 10
"""Orders that are run on each worker before anything is measured."""

AFTERMATH: Final = 0.2
"""Seconds in which a worker ends what the last orders left it to do, such as eviction."""


@dataclass(frozen=True)
class Batch:
    """What one batch of orders took.

    Attributes:
        variant: The variant's name.
        path: Whether its orders succeeded or failed.
        repetition: Batches of the same repetition were measured one right after another.
        runs_per_second: Throughput, as the clock on the wall has it.
        cpu_ms: CPU milliseconds of the worker for each run.
    """

    variant: str
    path: Path
    repetition: int
    runs_per_second: float
    cpu_ms: float


class Load:
    """Sends orders to workers.

    Args:
        client: A client without plugins.
        workers: The worker of each variant, by its letter.
        runs: How many orders make a batch.
        concurrency: How many are under way at once.
    """

    def __init__(
        self,
        client: Client,
        workers: Mapping[str, WorkerProcess],
        *,
        runs: int,
        concurrency: int,
    ) -> None:
        self._client = client
        self._workers = workers
        self._runs = runs
        self._concurrency = concurrency

    async def warm_up(self) -> None:
        """Let every worker import, connect and cache what it will need."""
        for variant in VARIANTS:
            for path in PATHS:
                await self._send(variant, path, "warm", WARM_UP)

    async def measure(self, repetitions: int) -> list[Batch]:
        """Run a batch of every variant and path, and again, in rotating order."""
        batches: list[Batch] = []
        for repetition in range(repetitions):
            for path in PATHS:
                for variant in rotated(repetition):
                    batches.append(await self._batch(variant, path, repetition))
            print(f"load: repetition {repetition + 1} of {repetitions}", file=sys.stderr)
        return batches

    async def _batch(self, variant: Variant, path: Path, repetition: int) -> Batch:
        worker = self._workers[variant.letter]
        cpu = await worker.cpu_seconds()
        start = time.perf_counter()
        await self._send(variant, path, f"{repetition:04d}", self._runs)
        elapsed = time.perf_counter() - start
        await asyncio.sleep(AFTERMATH)
        cpu = await worker.cpu_seconds() - cpu
        return Batch(variant.name, path, repetition, self._runs / elapsed, 1000 * cpu / self._runs)

    async def _send(self, variant: Variant, path: Path, name: str, runs: int) -> None:
        free = asyncio.Semaphore(self._concurrency)

        async def one(number: int) -> None:
            async with free:
                await self._run(variant, path, run_id(variant, path, name, number))

        await asyncio.gather(*map(one, range(runs)))

    async def _run(self, variant: Variant, path: Path, workflow_id: str) -> None:
        fails = path == "failure"
        order = Order(workflow_id, fails=fails)
        try:
            await self._client.execute_workflow(
                ORDER, order, id=workflow_id, task_queue=variant.queue, result_type=Receipt
            )
        except WorkflowFailureError:
            if not fails:
                raise
        else:
            if fails:
                raise RuntimeError(f"{workflow_id} was to fail")


def run_id(variant: Variant, path: Path, name: str, number: int) -> str:
    """Return the id of a run; all ids are equally long, as they count in the bytes of a history."""
    return f"{variant.letter}-{path}-{name}-{number:04d}"
