"""Servers and the harness that every integration test runs in."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sysconfig
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from tests.support.harness import Harness


def binary(name: str) -> str:
    """Find a server binary that a dev dependency put beside the interpreter, or on PATH."""
    beside = Path(sysconfig.get_path("scripts")) / name
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found, f"{name} is missing: install the dev extra"
    return found


@pytest.fixture(scope="session")
async def server() -> AsyncIterator[WorkflowEnvironment]:
    env = await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"), dev_server_log_level="error"
    )
    async with env:
        yield env
        await asyncio.sleep(0)


@pytest.fixture(scope="session")
async def time_skipping() -> AsyncIterator[WorkflowEnvironment]:
    env = await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=binary("temporal-test-server")
    )
    async with env:
        yield env


@pytest.fixture(scope="session")
def plain_client(server: WorkflowEnvironment) -> Client:
    """A client without the plugin."""
    return server.client


@pytest.fixture(params=[1000, 0], ids=["cached", "uncached"])
async def harness(
    request: pytest.FixtureRequest, server: WorkflowEnvironment
) -> AsyncIterator[Harness]:
    """A harness on the dev server, once with the workflow cache and once without."""
    harness = Harness(server.client, cache=request.param)
    yield harness
    await harness.replay_all()


@pytest.fixture(params=[1000, 0], ids=["cached", "uncached"])
async def skipping(
    request: pytest.FixtureRequest, time_skipping: WorkflowEnvironment
) -> AsyncIterator[Harness]:
    """A harness on the time-skipping server."""
    harness = Harness(time_skipping.client, cache=request.param)
    yield harness
    await harness.replay_all()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    # The SDK's bridge can abort the interpreter's exit while clients are still uncollected.
    gc.collect()
    os.environ.pop("TEMPORAL_DEBUG", None)
