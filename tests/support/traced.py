"""Workers that trace, through a real exporter, to a real receiver."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from temporalio.client import Client, Plugin
from temporalio.contrib.opentelemetry import (
    OpenTelemetryPlugin,
    ReplaySafeTracerProvider,
    create_tracer_provider,
)

from agboss_temporal import CompensationPlugin
from tests.support.harness import Done, Handle, Harness
from tests.support.otlp import Receiver


class Traced:
    """A receiver, and harnesses whose spans go there.

    ``ours`` and ``theirs`` are the plugins: ours traces actions, theirs everything.
    """

    def __init__(self, receiver: Receiver, provider: ReplaySafeTracerProvider, cache: int) -> None:
        self.receiver = receiver
        self._provider = provider
        self._cache = cache
        self.ours = CompensationPlugin(trace_actions=True)
        self.theirs = OpenTelemetryPlugin(add_temporal_spans=True)

    def harness(
        self,
        client: Client,
        *,
        plugins: Sequence[Plugin] | None = None,
        ours: CompensationPlugin | None = None,
    ) -> Harness:
        """Make a harness; its plugins are theirs and ours if nothing else is said."""
        ours = ours or self.ours
        plugins = [self.theirs, ours] if plugins is None else plugins
        return Harness(client, cache=self._cache, plugin=ours, plugins=plugins)

    async def start(self, harness: Harness, queue: str, run: Any, *args: Any) -> Handle:
        """Start a run inside a span of the client's, named ``request``."""
        with trace.get_tracer("tests").start_as_current_span("request"):
            return await harness.start(queue, run, *args)

    async def run(self, harness: Harness, workflow: type, *args: Any, **options: Any) -> Done:
        """Run a workflow to its end, and wait until its spans have arrived."""
        async with harness.worker([workflow], **options) as queue:
            handle = await self.start(harness, queue, workflow.run, *args)  # type: ignore[attr-defined]
            done = await harness.finish(handle)
        await self.export()
        return done

    async def export(self) -> None:
        """Wait until what has ended has arrived; leave out the queries of the tests."""
        await asyncio.to_thread(self._provider.force_flush)
        kept = [s for s in self.receiver.spans if not s.name.startswith(("QueryW", "HandleQ"))]
        self.receiver.spans[:] = kept


@contextmanager
def tracing(cache: int) -> Iterator[Traced]:
    """Make the process trace to a receiver of its own for a while."""
    provider = create_tracer_provider(shutdown_on_exit=False)
    with Receiver().listening() as receiver, pytest.MonkeyPatch.context() as patch:
        exporter = OTLPSpanExporter(f"{receiver.endpoint}/v1/traces")
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
        patch.setattr(trace, "_TRACER_PROVIDER", provider)
        yield Traced(receiver, provider, cache)
        provider.shutdown()
