"""What spans of activities say, under both of temporalio's integrations, and under none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio import activity
from temporalio.common import RetryPolicy
from temporalio.contrib.opentelemetry import (
    OpenTelemetryPlugin,
    TracingInterceptor,
    create_tracer_provider,
)
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from agboss_temporal import CompensationPlugin, CompensationPolicy
from tests.integration import telemetry_flows as flows
from tests.support import acts
from tests.support.harness import Done, Harness

QUICK = CompensationPolicy(
    undo_options={"retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=10))}
)


class Traced:
    """A provider whose spans are kept in the process."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.exporter = InMemorySpanExporter()
        provider.add_span_processor(BatchSpanProcessor(self.exporter))

    async def spans(self) -> list[ReadableSpan]:
        await asyncio.to_thread(self.provider.force_flush)
        return list(self.exporter.get_finished_spans())

    async def said(self, name: str) -> list[dict[str, Any]]:
        """Our attributes of the spans of a name, without our prefix."""
        found = [each for each in await self.spans() if each.name == name]
        return [
            {
                key.removeprefix("agboss.compensation."): value
                for key, value in (span.attributes or {}).items()
                if key.startswith("agboss.")
            }
            for span in found
        ]


@pytest.fixture(params=["plugin", "interceptor"])
def integration(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def traced(integration: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    modern = integration == "plugin"
    provider = create_tracer_provider(shutdown_on_exit=False) if modern else TracerProvider()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield Traced(provider)
    provider.shutdown()


@pytest.fixture(params=["client", "worker"])
async def run(
    request: pytest.FixtureRequest, integration: str, traced: Traced, server: WorkflowEnvironment
) -> Any:
    """Run a workflow, with temporalio's integration on the client or on the worker."""
    ours = CompensationPlugin(policy=QUICK)
    config = server.client.config()
    options: dict[str, Any] = {}
    on = config if request.param == "client" else options
    if integration == "plugin":
        on["plugins"] = [OpenTelemetryPlugin(add_temporal_spans=True)]
    else:
        on["interceptors"] = [TracingInterceptor(always_create_workflow_spans=True)]
    config["plugins"] = [*config.get("plugins", []), ours]
    harness = Harness(type(server.client)(**config), plugin=ours, plugins=config["plugins"])

    async def run(how: str, **more: Any) -> Done:
        return await harness.run(flows.Told, how, **options, **more)

    return run


async def test_an_action_and_its_undo(run: Any, traced: Traced) -> None:
    done = await run("fails")
    charged, reserved = (entry.key for entry in done.report.entries)
    assert await traced.said("RunActivity:charge") == [
        {"role": "action", "attempt": 1, "action.name": "charge", "action.key": charged}
    ]
    assert await traced.said("RunActivity:refund") == [
        {"role": "undo", "attempt": 1, "action.name": "charge", "action.key": charged}
    ]
    assert await traced.said("RunActivity:release") == [
        {"role": "undo", "attempt": 1, "action.name": "reserve", "action.key": reserved}
    ]
    assert await traced.said("RunActivity:note") == [{}]


async def test_every_attempt_of_an_undo(run: Any, traced: Traced) -> None:
    @activity.defn(name="refund")
    async def fails_twice(receipt: acts.Receipt) -> None:
        if activity.info().attempt < 3:
            raise ApplicationError("not yet")
        await acts.refund(receipt)

    activities = [fails_twice, *(each for each in acts.ACTIVITIES if each is not acts.refund)]
    await run("retries", activities=activities)
    attempts = [each["attempt"] for each in await traced.said("RunActivity:refund")]
    assert attempts == [1, 2, 3]


async def test_a_committer_and_an_undo_that_is_called(run: Any, traced: Traced) -> None:
    await run("commits")
    assert await traced.said("RunActivity:ship") == [{"role": "committer", "attempt": 1}]
    done = await run("by_hand")
    [told] = await traced.said("RunActivity:refund")
    assert (told["role"], told["action.name"]) == ("undo", "charge")
    assert done.world == ["charge:a", "refund:a"]


@pytest.mark.parametrize("integration", ["interceptor"], indirect=True)
async def test_a_plain_provider_gets_no_spans_of_workflows_from_us(
    run: Any, traced: Traced
) -> None:
    await run("fails", max_cached_workflows=0)
    scopes = Counter(
        span.instrumentation_scope.name if span.instrumentation_scope else ""
        for span in await traced.spans()
    )
    assert "agboss_temporal" not in scopes
    assert scopes.total() > 5
