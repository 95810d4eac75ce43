"""Paused runs, which the SDK has no name for, are open; a terminated one is recovered (R7)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from agboss_temporal import recovery
from agboss_temporal.recovery import RecoveryRefused
from agboss_temporal.recovery.executions import listed
from tests.conftest import binary
from tests.integration.recovery_flows import Steps
from tests.integration.test_cli_status import Cli
from tests.support.harness import Handle, Harness, until, until_observed
from tests.support.recoveries import recover, undone

PAUSE = ["--dynamic-config-value", "frontend.WorkflowPauseEnabled=true"]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    env = await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"),
        dev_server_log_level="error",
        dev_server_extra_args=PAUSE,
    )
    async with env:
        yield env.client


async def pause(client: Client, handle: Handle) -> None:
    process = await asyncio.create_subprocess_exec(
        *(binary("temporal"), "workflow", "pause", "--workflow-id", handle.id),
        *("--address", client.service_client.config.target_host),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0


async def test_r7_a_paused_run_is_terminated_and_recovered(client: Client) -> None:
    harness = Harness(client)
    cli = Cli(client.service_client.config.target_host)
    queue = f"q-{uuid.uuid4().hex[:8]}"
    async with harness.worker([Steps], queue=queue):
        handle = await harness.start(queue, Steps.run, ["a"])
        await until_observed(handle)
        await pause(client, handle)
        with pytest.raises(RecoveryRefused) as caught:
            await recovery.plan(harness.client, handle.id)
        assert caught.value.why == "open"
        assert (await cli("status", handle.id)).code == 0

        async def found() -> bool:
            return len([e async for e in listed(harness.client, f"TaskQueue = '{queue}'")]) == 1

        await until(found)
        swept = await recovery.sweep(harness.client, f"TaskQueue = '{queue}'")
        assert [run.result for run in swept.runs] == ["open"]
        await handle.terminate()
        assert (await recover(harness, handle)).status == "completed"
        assert undone(handle.id) == ["refund:a"]
    await harness.replay_all()
