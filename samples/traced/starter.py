"""Starts an order and says where its trace is: ``python -m samples.traced.starter --order-id 1``.

It takes what `samples.order.starter` takes.
"""

from __future__ import annotations

import asyncio
import gc
import sys

from opentelemetry import trace

from samples.order.starter import run
from samples.traced.telemetry import connect_traced, tracing


async def main() -> int:
    """Run one order inside a span, as a service that takes orders would."""
    with (
        tracing("order-starter"),
        trace.get_tracer(__name__).start_as_current_span("POST /orders") as span,
    ):
        print(f"trace {span.get_span_context().trace_id:032x}")
        return await run(connect_traced)


if __name__ == "__main__":
    status = asyncio.run(main())
    gc.collect()  # so that the SDK's native clients end before the interpreter does
    sys.exit(status)
