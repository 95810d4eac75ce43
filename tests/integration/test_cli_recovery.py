"""``agboss-temporal plan``, ``recover`` and ``sweep`` as processes, against a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.integration.recovery_flows import Steps
from tests.integration.test_cli_status import Cli
from tests.support.harness import Handle, Harness, until, until_observed
from tests.support.recoveries import undone


@pytest.fixture
def cli(server: WorkflowEnvironment) -> Cli:
    return Cli(server.client.service_client.config.target_host)


@pytest.fixture
async def harness(server: WorkflowEnvironment) -> AsyncIterator[Harness]:
    """One harness: nothing here depends on the workflow cache."""
    harness = Harness(server.client)
    yield harness
    await harness.replay_all()


async def terminated(harness: Harness, queue: str) -> Handle:
    handle = await harness.start(queue, Steps.run, ["a", "b"])
    await until_observed(handle, 2)
    await handle.terminate()
    return handle


async def test_r7_one_command_undoes_what_a_terminated_run_did(harness: Harness, cli: Cli) -> None:
    async with harness.worker([Steps]) as queue:
        handle = await terminated(harness, queue)
        before = await cli("status", handle.id)
        assert before.code == 1
        assert "2 open" in before.out
        plan = await cli("plan", handle.id)
        assert plan.code == 1
        assert "2 undos" in plan.out
        assert undone(handle.id) == []
        done = await cli("recover", handle.id, "--yes")
        assert (done.code, "completed" in done.out) == (0, True), done.err
        assert undone(handle.id) == ["refund:b", "refund:a"]
        after = await cli("status", handle.id)
        assert after.code == 0, after.out
        assert "2 undone" in after.out
        assert f"agboss-recovery/{handle.id}/" in after.out
        again = await cli("recover", handle.id, "--yes")
        assert again.code == 0
        assert undone(handle.id) == ["refund:b", "refund:a"]
        drawn = await cli("status", handle.id, "--format", "html")
        assert drawn.code == 0


async def test_what_cannot_be_recovered_ends_with_2(harness: Harness, cli: Cli) -> None:
    async with harness.worker([Steps]) as queue:
        handle = await harness.start(queue, Steps.run, ["a"])
        await until_observed(handle)
        for command in (["plan"], ["recover", "--yes"]):
            told = await cli(*command, handle.id)
            assert told.code == 2
            assert "is open; cancel it" in told.err
        await handle.terminate()


async def test_a_sweep_finds_and_recovers(harness: Harness, cli: Cli) -> None:
    async with harness.worker([Steps]) as queue:
        handles = [await terminated(harness, queue) for _ in range(2)]
        query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Terminated'"

        async def listed() -> bool:
            return len([e async for e in harness.client.list_workflows(query)]) == 2

        await until(listed)
        looked = await cli("sweep", query, "--dry-run", "--format", "json")
        assert looked.code == 1
        assert {(r["workflow_id"], r["result"]) for r in json.loads(looked.out)} == {
            (handle.id, "planned") for handle in handles
        }
        done = await cli("sweep", query, "--yes")
        assert done.code == 0, done.out
        assert [undone(handle.id) for handle in handles] == [["refund:b", "refund:a"]] * 2
        assert (await cli("sweep", query, "--dry-run")).code == 0
