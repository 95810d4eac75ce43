"""Where spans and metrics go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from temporalio.client import Client
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from agboss_temporal import CompensationPlugin
from samples.order.connection import connect

EXPORT_EVERY_MS: Final = 500
"""How much a worker that is killed can lose. Nothing else exports it again."""

MINUTES: Final = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400]
"""Buckets in seconds for what takes as long as somebody else's outage."""

METRICS: Final = PrometheusConfig(
    bind_address=os.environ.get("PROMETHEUS_ADDRESS", "127.0.0.1:9464"),
    counters_total_suffix=True,
    unit_suffix=True,
    durations_as_seconds=True,
    histogram_bucket_overrides={
        "agboss_compensation_unwind_duration": MINUTES,
        "agboss_compensation_undo_duration": MINUTES,
        "agboss_compensation_unwind_size": [1, 2, 5, 10, 20, 50, 100, 500],
    },
)


@contextmanager
def tracing(service: str) -> Iterator[None]:
    """Send this process's spans to ``OTEL_EXPORTER_OTLP_ENDPOINT``.

    The provider is the one of temporalio: only under that are unwinds traced. It exports from a
    thread of its own, because the sandbox of a workflow lets no exporter work there.
    """
    provider = create_tracer_provider(resource=Resource.create({"service.name": service}))
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=EXPORT_EVERY_MS))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


async def connect_traced(runtime: Runtime | None = None) -> Client:
    """Connect as the order sample does, with both plugins."""
    plugins = [
        OpenTelemetryPlugin(add_temporal_spans=True),
        CompensationPlugin(trace_actions=True),
    ]
    return await connect(plugins, runtime=runtime)


def measured() -> Runtime:
    """Make a runtime whose metrics are served at ``PROMETHEUS_ADDRESS``."""
    return Runtime(telemetry=TelemetryConfig(metrics=METRICS))
