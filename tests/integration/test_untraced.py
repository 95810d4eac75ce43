"""Where nobody traces, nothing of OpenTelemetry is called, nor even imported."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio.testing import WorkflowEnvironment

from tests.integration import telemetry_flows as flows
from tests.support.harness import Harness

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio, sys
if len(sys.argv) > 2:
    from opentelemetry import trace
    trace.get_current_span = trace.get_tracer = None
from temporalio.client import Client
from tests.integration import telemetry_flows as flows
from tests.support.harness import Harness

async def main():
    harness = Harness(await Client.connect(sys.argv[1]), cache=0)
    done = await harness.run(flows.Told, "fails")
    print(done.report.status, [n for n in sys.modules if n.startswith("opentelemetry")])

asyncio.run(main())
"""


async def output(server: WorkflowEnvironment, *arguments: str) -> str:
    """Run the program."""
    address = server.client.service_client.config.target_host
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM, address, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


async def test_a_worker_without_opentelemetry_never_loads_it(server: WorkflowEnvironment) -> None:
    assert await output(server) == "completed []"


async def test_one_that_others_have_loaded_is_not_called(server: WorkflowEnvironment) -> None:
    """Without a provider and an integration nobody traces."""
    assert (await output(server, "loaded")).startswith("completed ['opentelemetry")


async def test_a_plain_provider_and_no_integration_give_no_spans(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    done = await harness.run(flows.Told, "fails")
    assert done.report.status == "completed"
    assert exporter.get_finished_spans() == ()
