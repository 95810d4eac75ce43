"""``agboss-temporal status`` as a process of its own, against a real server."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.converter import DataConverter
from temporalio.testing import WorkflowEnvironment

from tests.integration.cli_flows import LeavesAChild, Mirror, Order, Waits
from tests.support.acts import WORLD
from tests.support.harness import Handle, Harness, until, until_observed

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Shown:
    code: int
    out: str
    err: str


class Cli:
    """Starts the command, connected to the server of the tests."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agboss_temporal.cli"),
            *(*arguments, "--address", self._address),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )

    async def __call__(self, *arguments: str) -> Shown:
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return Shown(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def cli(server: WorkflowEnvironment) -> Cli:
    return Cli(server.client.service_client.config.target_host)


@pytest.fixture
async def harness(server: WorkflowEnvironment) -> AsyncIterator[Harness]:
    """One harness: nothing here depends on the workflow cache."""
    harness = Harness(server.client)
    yield harness
    await harness.replay_all()


async def closed(handle: Handle) -> None:
    async def there() -> bool:
        return (await handle.describe()).status != WorkflowExecutionStatus.RUNNING

    await until(there)


async def ended(handle: Handle, how: str) -> None:
    await handle.signal("end", how)
    await closed(handle)


async def test_the_exit_code_says_how_a_run_stands(harness: Harness, cli: Cli) -> None:
    WORLD.broken.add("stuck")
    async with harness.worker([Order]) as queue:
        handle = await harness.start(queue, Order.run, "box")
        await until_observed(handle, 2)
        going = await cli("status", handle.id)
        assert (going.code, going.err) == (0, "")
        assert "○ open" in going.out
        await ended(handle, "fail")
        undone = await cli("status", handle.id)
        assert undone.code == 0
        assert "failed with Refused" in undone.out
        assert undone.out.count("✓ undone") == 2

        handle = await harness.start(queue, Order.run, "stuck")
        await until_observed(handle, 2)
        await ended(handle, "fail")
        left = await cli("status", handle.id)
        assert left.code == 1
        assert "ReleaseBroken" in left.out

        handle = await harness.start(queue, Order.run, "box")
        await until_observed(handle, 2)
        await handle.terminate()
        gone = await cli("status", handle.id)
        assert gone.code == 1
        assert "needs attention  2 open" in gone.out


async def test_the_newest_run_is_shown_unless_another_is_named(harness: Harness, cli: Cli) -> None:
    async with harness.worker([Order]) as queue:
        handle = await harness.start(queue, Order.run, "box", True)
        newest = harness.client.get_workflow_handle(handle.id)
        await until_observed(newest, 2)
        new = json.loads((await cli("status", handle.id, "--format", "json")).out)
        assert [e["carried"] for e in new["entries"]] == [True, False, False]
        old = await cli("status", handle.id, "-r", handle.first_execution_run_id or "")
        assert old.code == 0
        assert f"followed by run {new['run_id']}" in " ".join(old.out.split())
        await ended(newest, "return")


async def test_a_run_is_watched_until_it_is_closed(harness: Harness, cli: Cli) -> None:
    async with harness.worker([Order]) as queue:
        handle = await harness.start(queue, Order.run, "box")
        await until_observed(handle, 2)
        process = await cli.start("status", handle.id, "--watch", "--interval", "0.1")
        assert process.stdout is not None
        first = await process.stdout.readuntil(b"release")
        assert b"open, at event" in first
        await ended(handle, "fail")
        rest, _ = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0
        last = rest.decode().rpartition(f"Order {handle.id}")[2]
        assert last.count("✓ undone") == 2
        assert b"\x1b" not in first + rest


async def test_watching_ends_at_once_when_interrupted(harness: Harness, cli: Cli) -> None:
    async with harness.worker([Order]) as queue:
        handle = await harness.start(queue, Order.run, "box")
        await until_observed(handle, 2)
        process = await cli.start("status", handle.id, "--watch", "--interval", "60")
        assert process.stdout is not None
        await process.stdout.readuntil(b"release")
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), 20)
        assert (process.returncode, err) == (130, b"")
        await ended(handle, "return")


async def test_a_child_that_goes_on_is_told_of(harness: Harness, cli: Cli) -> None:
    async with harness.worker([LeavesAChild, Waits]) as queue:
        handle = await harness.start(queue, LeavesAChild.run)
        await until_observed(handle, 1)
        await handle.terminate()
        shown = await cli("status", handle.id, "--format", "json")
        (child,) = json.loads(shown.out)["children"]
        assert (child["workflow_id"], child["end"]) == (f"{handle.id}-child", "running")
        await harness.client.get_workflow_handle(child["workflow_id"]).terminate()


async def test_what_a_codec_encoded_is_read_with_it(harness: Harness, cli: Cli) -> None:
    """What a run has carried over stands in its memo, which is encoded."""
    encoded = dataclasses.replace(DataConverter.default, payload_codec=Mirror())
    mirrored = Harness(harness.plain, data_converter=encoded)
    async with mirrored.worker([Order]) as queue:
        handle = await mirrored.start(queue, Order.run, "box", True)
        newest = mirrored.client.get_workflow_handle(handle.id)
        await until_observed(newest, 2)
        blind = await cli("status", handle.id)
        assert blind.code == 1
        assert "Could not be read" in blind.out
        shown = await cli("status", handle.id, "--codec", "tests.integration.cli_flows:Mirror")
        assert shown.code == 0
        assert "^ was handed over by an earlier run" in shown.out
        await ended(newest, "return")
    await mirrored.replay_all()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("no-such-workflow\x1b[31m",), "not found"),
        (("w", "--namespace", "nowhere"), "nowhere"),
        (("w", "--run-id", "not-a-uuid"), "Invalid RunId"),
    ],
)
async def test_what_is_not_there_is_told_in_one_line(
    cli: Cli, arguments: tuple[str, ...], told: str
) -> None:
    shown = await cli("status", *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert told.lower() in shown.err.lower()
    assert shown.err.count("\n") == 1
    assert "\x1b" not in shown.err


async def test_the_environment_says_where_the_server_is(
    server: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "from-the-environment")
    shown: Any = await cli("status", "w")
    assert shown.code == 2
    assert "from-the-environment" in shown.err
