"""A worker in a process of its own, to be killed: ``python -m tests.chaos.worker_main ...``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agboss_temporal import CompensationPlugin
from tests.chaos.shop import ChaosOrder, Shop
from tests.chaos.world import World


def _die_with_parent() -> None:
    """End when the parent's end of the pipe is closed, however the parent ended."""
    sys.stdin.buffer.read()
    os._exit(1)


def _quiet() -> Runtime:
    filter = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=filter)))


async def _work(arguments: argparse.Namespace) -> None:
    client = await Client.connect(
        arguments.address, plugins=[CompensationPlugin()], runtime=_quiet()
    )
    restrictions = SandboxRestrictions.default.with_passthrough_modules("tests")
    worker = Worker(
        client,
        task_queue=arguments.queue,
        workflows=[ChaosOrder],
        activities=Shop(World(arguments.world)).activities(),
        workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
        max_cached_workflows=arguments.cache,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
    )
    await worker.run()


def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("queue")
    parser.add_argument("world", type=Path)
    parser.add_argument("cache", type=int)
    logging.getLogger("temporalio.activity").setLevel(logging.CRITICAL)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    asyncio.run(_work(parser.parse_args()))


if __name__ == "__main__":
    main()
