"""A worker in a process of its own, so that its CPU can be told from that of the load and server.

``python -m benchmarks.worker ADDRESS LETTER`` runs until its standard input closes, and answers
each line of it with the CPU seconds that it has used so far.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.shape import ACTIVITIES
from benchmarks.variants import VARIANTS, Variant, sandbox


class WorkerProcess:
    """The load generator's end of a worker process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def cpu_seconds(self) -> float:
        """Ask how much CPU the worker has used, all its threads counted."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()
        return float(await self.line())

    async def line(self) -> str:
        """Read the next line that the worker writes."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a worker process ended; its error output says why")
        return line.decode().strip()


@asynccontextmanager
async def worker_process(address: str, variant: Variant) -> AsyncIterator[WorkerProcess]:
    """Start the worker of a variant and stop it afterwards."""
    root = Path(__file__).parent.parent
    command = (sys.executable, "-m", "benchmarks.worker", address, variant.letter)
    process = await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=root)
    try:
        worker = WorkerProcess(process)
        await worker.line()
        yield worker
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def serve(address: str, variant: Variant) -> None:
    """Run the worker of a variant until standard input closes."""
    client = await Client.connect(address, plugins=variant.plugins())
    worker = Worker(
        client,
        task_queue=variant.queue,
        workflows=variant.workflows,
        activities=ACTIVITIES,
        workflow_runner=sandbox(),
    )
    async with worker:
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(time.process_time(), flush=True)


def main(address: str, letter: str) -> None:
    """Run as a process."""
    [variant] = [v for v in VARIANTS if v.letter == letter]
    logging.getLogger("temporalio.activity").setLevel(logging.CRITICAL)  # orders that are to fail
    asyncio.run(serve(address, variant))
    gc.collect()
    time.sleep(0.3)  # the SDK's own threads may still be letting go of the interpreter


if __name__ == "__main__":
    main(*sys.argv[1:])
