"""A worker is killed in the middle of an undo; another one ends the spans that it had begun."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from agboss_temporal import CompensationPlugin
from tests.integration import telemetry_flows as flows
from tests.integration.test_traces import FAILS
from tests.support.acts import WORLD
from tests.support.harness import Handle, until, until_did
from tests.support.traced import Traced, tracing

ROOT = Path(__file__).parents[2]

PIPE = asyncio.subprocess.PIPE


@asynccontextmanager
async def process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a worker; it ends with its input."""
    command = (sys.executable, "-m", "tests.support.traced_worker", *arguments)
    worker = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        assert await asyncio.wait_for(worker.stdout.readline(), 30) == b"ready\n"
        yield worker
    finally:
        worker.stdin.close()
        await asyncio.wait_for(worker.wait(), 30)


async def undo_is_at_work(handle: Handle) -> bool:
    pending = (await handle.describe()).raw_description.pending_activities
    return [each.activity_type.name for each in pending if each.HasField("last_started_time")] == [
        "release"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["1000", "0"])
async def test_a_killed_worker_leaves_no_span_out_and_none_twice(
    server: WorkflowEnvironment, cache: str
) -> None:
    with tracing(1000) as traced:
        address = server.client.service_client.config.target_host
        where = (address, f"q-{uuid.uuid4().hex[:10]}", traced.receiver.endpoint, "--cache", cache)
        harness = traced.harness(server.client)
        async with process(*where, "--stuck") as first:
            handle = await traced.start(harness, where[1], flows.Told.run, "fails")
            await until(lambda: undo_is_at_work(handle))
            await until(lambda: exported(traced, "UnwindStarted:Told", "Undo:charge"))
            first.kill()
        seen = {each.name for each in traced.receiver.spans}
        assert "Unwind:Told" not in seen
        async with process(*where):
            done = await harness.finish(handle, timeout=60)
        await traced.export()
    assert done.report.status == "completed"
    assert traced.receiver.tree() == FAILS
    [told] = done.report.unwinds
    assert told.started_at is not None
    assert told.ended_at is not None
    unwind = traced.receiver.one("Unwind:Told")
    took = (told.ended_at - told.started_at).total_seconds()
    assert took > 2
    assert (unwind.ended - unwind.started) / 1e9 == pytest.approx(took, abs=0.001)


async def test_whether_actions_are_traced_may_change_in_the_middle(
    server: WorkflowEnvironment,
) -> None:
    """A deploy may switch it: ids stay the same, and no two spans have one."""
    with tracing(0) as traced:
        harness = traced.harness(server.client, ours=CompensationPlugin())
        other = traced.harness(server.client)
        WORLD.gate("release:gate")
        async with harness.worker([flows.ToldAtGate]) as queue:
            handle = await traced.start(harness, queue, flows.ToldAtGate.run)
            await until_did(handle, "at:release:gate")
        WORLD.gate("release:gate").set()
        async with other.worker([flows.ToldAtGate], queue=queue):
            done = await harness.finish(handle)
        del WORLD.gates["release:gate"]
        await traced.export()
    assert done.report.status == "completed"
    spans = traced.receiver.spans
    ids = {each.id for each in spans}
    assert len(ids) == len(spans)
    assert [each.name for each in spans if each.parent and each.parent not in ids] == []


async def exported(traced: Traced, *names: str) -> bool:
    return {*names} <= {each.name for each in traced.receiver.spans}
