"""What is counted of an undo's attempts, as they end on the worker that executes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.integration import attempt_flows as flows
from tests.support.acts import ACTIVITIES
from tests.support.harness import Harness, until
from tests.support.scraping import Endpoint

UNDOS = [flows.undo_elsewhere, flows.undo_that_hangs, flows.undo_that_is_late]
EVERYTHING = [*ACTIVITIES, *flows.ACTIONS.values(), *UNDOS]


@pytest.fixture
async def measured(server: WorkflowEnvironment) -> AsyncIterator[tuple[Harness, Endpoint]]:
    endpoint = await Endpoint.open(server.client)
    harness = Harness(endpoint.client)
    yield harness, endpoint
    await harness.replay_all()


async def counted(endpoint: Endpoint, action: str, errors: int) -> bool:
    found = await endpoint.totals("undo_attempts_total", "action", "result")
    assert found.keys() <= {(action, "error")}
    return found.get((action, "error")) == errors


@pytest.mark.parametrize("name", ["act_hanging", "act_late"])
async def test_an_attempt_that_times_out_is_an_error(
    measured: tuple[Harness, Endpoint], name: str
) -> None:
    harness, endpoint = measured
    async with harness.worker([flows.Attempted], EVERYTHING) as queue:
        done = await harness.finish(await harness.start(queue, flows.Attempted.run, name))
        assert [e.verdict for e in done.report.entries] == ["failed"]
        # The worker learns of a timeout some seconds after the server.
        await until(lambda: counted(endpoint, name, 2))


async def test_an_attempt_that_completes_elsewhere_is_not_counted(
    measured: tuple[Harness, Endpoint],
) -> None:
    harness, endpoint = measured
    async with harness.worker([flows.Attempted], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Attempted.run, "act_elsewhere")
        token = await asyncio.wait_for(flows.TOKENS.get(), 20)
        await harness.client.get_async_activity_handle(task_token=token).complete()
        done = await harness.finish(handle)
        assert [e.verdict for e in done.report.entries] == ["undone"]
    assert await endpoint.totals("undo_attempts_total", "action", "result") == {}
