"""The worker: ``python -m samples.order.worker``."""

from __future__ import annotations

import asyncio
import gc
import signal
from concurrent.futures import ThreadPoolExecutor

from temporalio.client import Client
from temporalio.worker import Worker

from samples.order.activities import ACTIVITIES
from samples.order.connection import connect
from samples.order.workflow import TASK_QUEUE, OrderWorkflow


async def work(client: Client) -> None:
    """Work until interrupted."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: loop.call_soon_threadsafe(stop.set))
    with ThreadPoolExecutor(max_workers=10) as threads:
        async with Worker(
            client,
            task_queue=TASK_QUEUE,
            workflows=[OrderWorkflow],
            activities=ACTIVITIES,
            activity_executor=threads,
            max_concurrent_activities=10,
        ):
            print("Worker started, Ctrl-C to stop", flush=True)
            await stop.wait()


async def main() -> None:
    """Connect, and work."""
    await work(await connect())


if __name__ == "__main__":
    asyncio.run(main())
    gc.collect()  # so that the SDK's native clients end before the interpreter does
