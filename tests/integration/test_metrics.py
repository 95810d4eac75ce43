"""The metrics of a worker's real endpoint, against what the world and the reports say."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from temporalio.testing import WorkflowEnvironment

from agboss_temporal.core.budget import HistoryBudget
from tests.integration import telemetry_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import Done, Harness, until_did
from tests.support.limits import Budgeted
from tests.support.scraping import Endpoint

ORDERS = ["good", "fails", "gives_up", "joins", "by_hand", "asks"] * 3


@pytest.fixture(params=[1000, 1, 0], ids=["cached", "one-cached", "uncached"])
async def measured(
    request: pytest.FixtureRequest, server: WorkflowEnvironment
) -> AsyncIterator[tuple[Harness, Endpoint]]:
    """A harness whose workers have a metrics endpoint of their own; a cache of one evicts."""
    endpoint = await Endpoint.open(server.client)
    harness = Harness(endpoint.client, cache=request.param)
    WORLD.broken.add("stuck")
    yield harness, endpoint
    WORLD.broken.discard("stuck")
    before = await endpoint.scrape()
    await harness.replay_all()
    assert await endpoint.scrape() == before


async def test_counts_are_those_of_the_world(measured: tuple[Harness, Endpoint]) -> None:
    harness, endpoint = measured
    async with harness.worker([flows.Told]) as queue:
        handles = [await harness.start(queue, flows.Told.run, how) for how in ORDERS]
        runs = await asyncio.gather(*(harness.finish(handle) for handle in handles))
        did = Counter(what.split(":")[0] for run in runs for what in run.world)
        actions = await endpoint.totals("actions_total", "action", "state")
        assert actions == {
            ("charge", "opened"): did["charge"],
            ("charge", "sealed"): did["charge"] - did["refund"],
            ("reserve", "opened"): did["reserve"],
            ("reserve", "sealed"): did["ship"],
        }
        assert await endpoint.totals("undos_total", "action", "verdict") == {
            ("charge", "undone"): did["refund"],
            ("reserve", "undone"): did["release"],
            ("reserve", "failed"): ORDERS.count("gives_up"),
        }
        assert await endpoint.totals("undo_attempts_total", "action", "result") == {
            ("charge", "ok"): did["refund"],
            ("reserve", "ok"): did["release"],
            ("reserve", "error"): ORDERS.count("gives_up"),
        }
        await unwinds_are_those_of_the_reports(endpoint, runs)


async def unwinds_are_those_of_the_reports(endpoint: Endpoint, runs: list[Done]) -> None:
    unwinds = [unwind for run in runs for unwind in run.report.unwinds]
    ended = Counter((str(each.trigger), str(each.status)) for each in unwinds)
    started = Counter((str(each.trigger),) for each in unwinds)
    assert {trigger for trigger, _ in ended} == {"node-failure", "join", "explicit"}
    assert await endpoint.totals("unwinds_total", "trigger", "status") == ended
    assert await endpoint.totals("unwinds_started_total", "trigger") == started
    counted = await endpoint.totals("unwind_duration_seconds_count", "trigger", "status")
    assert counted == ended
    sizes = await endpoint.totals("unwind_size_sum")
    assert sizes == {(): sum(len(run.report.entries) for run in runs)}
    took = sum(
        (each.ended_at - each.started_at).total_seconds()
        for each in unwinds
        if each.ended_at is not None and each.started_at is not None
    )
    [measured] = (await endpoint.totals("unwind_duration_seconds_sum")).values()
    assert measured == pytest.approx(took, abs=0.002 * len(unwinds))


async def test_an_action_in_doubt_is_counted_once(measured: tuple[Harness, Endpoint]) -> None:
    harness, endpoint = measured
    async with harness.worker([flows.Told]) as queue:
        handle = await harness.start(queue, flows.Told.run, "leaves_running")
        await harness.finish(handle)
        WORLD.gate("telemetry").set()
        await until_did(handle, "charge:late")
        counted = await endpoint.totals("actions_total", "action", "state")
    WORLD.gate("telemetry").clear()
    assert counted == {("charge", "in_doubt"): 1}


async def test_what_is_carried_over_is_counted_where_it_was_opened(
    measured: tuple[Harness, Endpoint],
) -> None:
    harness, endpoint = measured
    async with harness.worker([flows.Told]) as queue:
        handle = await harness.start(queue, flows.Told.run, "goes_on")
        await harness.finish(handle)
        opened = await endpoint.totals("actions_total", "action", "state", "workflow_type")
        undone = await endpoint.totals("undos_total", "action", "verdict")
    assert opened == {("charge", "opened", "Told"): 2}
    assert undone == {("charge", "undone"): 2}


async def test_what_is_handed_over_is_counted_where_it_is_undone(
    measured: tuple[Harness, Endpoint],
) -> None:
    measured_harness, endpoint = measured
    full = Harness(
        endpoint.client,
        cache=measured_harness.cache,
        plugin=Budgeted(HistoryBudget(events=1, per_child=1)),
    )
    async with full.worker([flows.Told]) as queue:
        handle = await full.start(queue, flows.Told.run, "gives_up")
        done = await full.finish(handle)
        undos = await endpoint.totals("undos_total", "action", "verdict", "workflow_type")
        unwinds = await endpoint.totals("unwinds_total", "status", "workflow_type")
    assert done.report.status == "partial"
    assert undos == {
        ("charge", "undone", "agboss.recovery"): 1,
        ("reserve", "failed", "agboss.recovery"): 1,
    }
    assert unwinds == {
        ("partial", "Told"): 1,
        ("completed", "agboss.recovery"): 1,
        ("failed", "agboss.recovery"): 1,
    }
    await full.replay_all()
