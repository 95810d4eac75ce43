"""A worker that traces, in a process of its own: ``python -m tests.support.traced_worker ...``.

It says ``ready`` when it polls, and works until its input is closed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import timedelta

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from temporalio import activity
from temporalio.client import Client
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider
from temporalio.worker import Worker

from agboss_temporal import CompensationPlugin, CompensationPolicy
from tests.integration import telemetry_flows as flows
from tests.support import acts

POLICY = CompensationPolicy(undo_options={"start_to_close_timeout": timedelta(seconds=3)})


@activity.defn(name="release")
async def release_never(receipt: acts.Receipt) -> None:
    await asyncio.sleep(3600)


async def main(arguments: argparse.Namespace) -> None:
    provider = create_tracer_provider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{arguments.collector}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
    trace.set_tracer_provider(provider)
    ours = CompensationPlugin(policy=POLICY, trace_actions=True)
    client = await Client.connect(
        arguments.address, plugins=[OpenTelemetryPlugin(add_temporal_spans=True), ours]
    )
    replaced = {acts.release: release_never} if arguments.stuck else {}
    async with Worker(
        client,
        task_queue=arguments.queue,
        workflows=[flows.Told],
        activities=[replaced.get(each, each) for each in acts.ACTIVITIES],
        max_cached_workflows=arguments.cache,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
    ):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.buffer.read)
    provider.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("queue")
    parser.add_argument("collector")
    parser.add_argument("--cache", type=int, default=1000)
    parser.add_argument("--stuck", action="store_true", help="one undo never ends")
    asyncio.run(main(parser.parse_args()))
