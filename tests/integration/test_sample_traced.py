"""The traced sample, run as its README says."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.request
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.support.otlp import Receiver
from tests.support.scraping import free_port

ROOT = Path(__file__).parents[2]

RUN = "POST /orders/StartWorkflow:OrderWorkflow/RunWorkflow:OrderWorkflow"

PIPE = asyncio.subprocess.PIPE


@pytest.mark.slow
async def test_an_order_that_the_carrier_refuses(
    server: WorkflowEnvironment, tmp_path: Path
) -> None:
    metrics = f"127.0.0.1:{free_port()}"
    with Receiver().listening() as receiver:
        env = {
            **os.environ,
            "TEMPORAL_ADDRESS": server.client.service_client.config.target_host,
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "PROMETHEUS_ADDRESS": metrics,
            "ORDER_WORLD": str(tmp_path / "world.db"),
        }

        async def start(*arguments: str) -> asyncio.subprocess.Process:
            command = (sys.executable, "-m", *arguments)
            return await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=env, stdout=PIPE)

        worker = await start("samples.traced.worker")
        try:
            assert worker.stdout is not None
            assert b"started" in await asyncio.wait_for(worker.stdout.readline(), 30)
            order = ("--order-id", tmp_path.name, "--fail", "carrier")
            starter = await start("samples.traced.starter", *order)
            told, _ = await asyncio.wait_for(starter.communicate(), 60)
            counted = (await asyncio.to_thread(read, f"http://{metrics}/metrics")).splitlines()
        finally:
            worker.send_signal(signal.SIGTERM)
            await asyncio.wait_for(worker.wait(), 30)
    tree = receiver.tree()
    assert tree[f"{RUN}/Unwind:OrderWorkflow/Undo:charge_card => Action:charge_card"] == 1
    assert tree[f"{RUN}/Unwind:OrderWorkflow/Undo:reserve_stock => Action:reserve_stock"] == 1
    assert tree[f"{RUN}/UnwindStarted:OrderWorkflow"] == 1
    assert {each.trace for each in receiver.spans} == {told.decode().split()[1]}
    [bucket] = [
        line
        for line in counted
        if "unwind_duration_seconds_bucket" in line and 'le="14400"' in line
    ]
    assert 'workflow_type="OrderWorkflow"' in bucket


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())
