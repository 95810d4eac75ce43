"""Spans, as a real OTLP receiver gets them from a real exporter."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from temporalio.contrib.opentelemetry import (
    OpenTelemetryPlugin,
    ReplaySafeTracerProvider,
    create_tracer_provider,
)
from temporalio.testing import WorkflowEnvironment

from agboss_temporal import CompensationPlugin
from tests.integration import telemetry_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import Done, Harness
from tests.support.otlp import Receiver

RUN = "request/StartWorkflow:Told/RunWorkflow:Told"

FAILS = Counter(
    {
        "request": 1,
        "request/StartWorkflow:Told": 1,
        RUN: 1,
        f"{RUN}/Action:reserve": 1,
        f"{RUN}/Action:reserve/StartActivity:reserve": 1,
        f"{RUN}/Action:reserve/StartActivity:reserve/RunActivity:reserve": 1,
        f"{RUN}/StartActivity:note": 1,
        f"{RUN}/StartActivity:note/RunActivity:note": 1,
        f"{RUN}/Action:charge": 1,
        f"{RUN}/Action:charge/StartActivity:charge": 1,
        f"{RUN}/Action:charge/StartActivity:charge/RunActivity:charge": 1,
        f"{RUN}/StartActivity:explode": 1,
        f"{RUN}/StartActivity:explode/RunActivity:explode": 1,
        f"{RUN}/UnwindStarted:Told": 1,
        f"{RUN}/Unwind:Told": 1,
        f"{RUN}/Unwind:Told/Undo:charge => Action:charge": 1,
        f"{RUN}/Unwind:Told/Undo:charge/StartActivity:refund": 1,
        f"{RUN}/Unwind:Told/Undo:charge/StartActivity:refund/RunActivity:refund": 1,
        f"{RUN}/Unwind:Told/Undo:reserve => Action:reserve": 1,
        f"{RUN}/Unwind:Told/Undo:reserve/StartActivity:release": 1,
        f"{RUN}/Unwind:Told/Undo:reserve/StartActivity:release/RunActivity:release": 1,
    }
)
"""Every span of a run that fails after two actions: its path, and what it is linked to."""


class Traced:
    """A harness that traces to a receiver."""

    def __init__(self, receiver: Receiver, provider: ReplaySafeTracerProvider, cache: int) -> None:
        self.receiver = receiver
        self.provider = provider
        self.cache = cache
        self.ours = CompensationPlugin(trace_actions=True)
        self.theirs = OpenTelemetryPlugin(add_temporal_spans=True)

    async def run(self, harness: Harness, how: str, **options: object) -> Done:
        """Run a workflow inside a client's span, and export everything."""
        async with harness.worker([flows.Told], **options) as queue:  # type: ignore[arg-type]
            with trace.get_tracer("tests").start_as_current_span("request"):
                handle = await harness.start(queue, flows.Told.run, how)
            done = await harness.finish(handle)
        await asyncio.to_thread(self.provider.force_flush)
        self.receiver.spans = [
            each for each in self.receiver.spans if not each.name.startswith(("Query", "HandleQ"))
        ]
        return done


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().listening() as receiver:
        yield receiver


@pytest.fixture(params=[1000, 0], ids=["cached", "uncached"])
def traced(
    request: pytest.FixtureRequest, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Traced]:
    provider = create_tracer_provider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{receiver.endpoint}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield Traced(receiver, provider, request.param)
    provider.shutdown()


ARRANGEMENTS = [
    ("TO", ""),
    ("OT", ""),
    ("T", "O"),
    ("O", "T"),
    ("", "TO"),
    ("", "OT"),
]


@pytest.mark.parametrize(
    ("on_client", "on_worker"), ARRANGEMENTS, ids=[f"{c}-{w}" for c, w in ARRANGEMENTS]
)
async def test_one_trace_wherever_the_plugins_are(
    traced: Traced,
    server: WorkflowEnvironment,
    caplog: pytest.LogCaptureFixture,
    on_client: str,
    on_worker: str,
) -> None:
    """``T`` is the plugin that traces, ``O`` our own."""
    plugins = {"T": traced.theirs, "O": traced.ours}
    harness = Harness(
        server.client,
        cache=traced.cache,
        plugin=traced.ours,
        plugins=[plugins[each] for each in on_client],
    )
    await traced.run(harness, "fails", plugins=[plugins[each] for each in on_worker])
    expected = FAILS
    if "T" in on_worker:
        # Nothing of the client is traced, nor sent along: the run's trace is its own.
        inside = [path for path in FAILS if path.startswith(RUN)]
        expected = Counter([path.replace("request/StartWorkflow:Told/", "") for path in inside])
        expected["request"] = 1
    assert traced.receiver.tree() == expected
    assert len({each.trace for each in traced.receiver.named("RunW", "Act", "Un")}) == 1
    await harness.replay_all()
    await asyncio.to_thread(traced.provider.force_flush)
    assert traced.receiver.tree() == expected
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


@pytest.fixture
def harness(traced: Traced, server: WorkflowEnvironment) -> Harness:
    return Harness(
        server.client,
        cache=traced.cache,
        plugin=traced.ours,
        plugins=[traced.theirs, traced.ours],
    )


async def test_times_and_attributes(traced: Traced, harness: Harness) -> None:
    WORLD.broken.add("stuck")
    done = await traced.run(harness, "gives_up")
    WORLD.broken.discard("stuck")
    receiver = traced.receiver
    [charged, stuck] = done.report.entries
    unwind = receiver.one("Unwind:Told")
    assert unwind.own() == {
        "unwind.trigger": "node-failure",
        "unwind.ordinal": 1,
        "unwind.size": 2,
        "unwind.status": "partial",
        "unwind.verdicts.undone": 1,
        "unwind.verdicts.failed": 1,
    }
    assert unwind.attributes["error.type"] == "Boom"
    assert unwind.attributes["temporalWorkflowID"] == done.workflow_id
    assert unwind.failed
    assert unwind.scope == "agboss_temporal"
    [told] = done.report.unwinds
    assert told.started_at is not None
    assert told.ended_at is not None
    took = (told.ended_at - told.started_at).total_seconds()
    assert (unwind.ended - unwind.started) / 1e9 == pytest.approx(took, abs=0.001)
    started = receiver.one("UnwindStarted:Told")
    assert started.started == started.ended == unwind.started
    undone, failed = receiver.named("Undo:")
    assert undone.own() == {
        "action.name": "charge",
        "action.key": charged.key,
        "action.outcome": "completed",
        "undo.name": "refund",
        "undo.verdict": "undone",
    }
    assert not undone.failed
    assert failed.own()["undo.verdict"] == "failed"
    assert failed.own()["undo.reason"] == "ReleaseBroken"
    assert failed.own()["action.key"] == stuck.key
    assert failed.failed
    assert unwind.started <= undone.started <= undone.ended <= failed.started <= failed.ended
    assert failed.ended <= unwind.ended
    action = receiver.one("Action:charge")
    assert action.own() == {
        "action.name": "charge",
        "action.key": charged.key,
        "action.state": "opened",
    }
    await harness.replay_all()


async def test_no_message_and_no_payload_is_in_a_span(traced: Traced, harness: Harness) -> None:
    await traced.run(harness, "fails")
    ours = [each for each in traced.receiver.spans if each.scope == "agboss_temporal"]
    assert len(ours) == 6
    assert "it went wrong" not in repr(ours)
