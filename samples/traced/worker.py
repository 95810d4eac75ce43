"""The order sample's worker, traced and measured: ``python -m samples.traced.worker``."""

from __future__ import annotations

import asyncio
import gc

from samples.order.worker import work
from samples.traced.telemetry import connect_traced, measured, tracing


async def main() -> None:
    """Work until interrupted."""
    with tracing("order-worker"):
        await work(await connect_traced(measured()))


if __name__ == "__main__":
    asyncio.run(main())
    gc.collect()  # so that the SDK's native clients end before the interpreter does
