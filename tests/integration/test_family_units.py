"""Children in joins and handlers, and children that run when their parent continues as new."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)

from tests.integration import family_flows as flows
from tests.support.acts import WORLD
from tests.support.chains import finish_chain
from tests.support.families import relative, until_charged, until_status
from tests.support.harness import (
    Harness,
    events_of,
    names,
    until_observed,
)

ALL: Sequence[type] = [flows.Household, flows.Sibling, flows.Tour]


# -- in joins and handlers


@pytest.mark.parametrize(
    ("shape", "child", "parent", "doubts"),
    [
        ("joined", ["charge:tour", "refund:tour"], [], [("Tour", "cancelled")]),
        ("joined_with_stubborn", ["charge:tour"], ["refund:tour"], []),
    ],
)
async def test_u2_a_failing_branch_takes_a_child_with_it(
    harness: Harness,
    shape: str,
    child: list[str],
    parent: list[str],
    doubts: list[tuple[str, str]],
) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, shape)
        tour = relative(harness, handle, "tour")
        await until_charged(tour, "charge:tour")
        await until_observed(handle, 2)
        await handle.signal("proceed")
        done = await harness.finish(handle)
    assert WORLD.of(tour.id) == child
    assert done.world == [
        "charge:parent",
        "charge:branch",
        *parent,
        "refund:branch",
        "note:caught",
        "charge:after",
        "refund:after",
        "refund:parent",
    ]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == doubts


async def test_u4_a_cancel_reaches_the_child_of_a_handler(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "waits")
        update = await handle.start_update("travel", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        tour = relative(harness, handle, "tour")
        await until_charged(tour, "charge:tour")
        await handle.cancel()
        done = await harness.finish(handle)
        with pytest.raises(WorkflowUpdateFailedError):
            await update.result()
    assert done.status == "CANCELED"
    assert WORLD.across(handle.id)[3:] == ["refund:tour", "refund:in handler", "refund:parent"]


# -- while the parent continues as new


async def test_u6_a_child_that_runs_when_its_parent_continues_is_cancelled_and_unwinds(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "renews_beside_a_sibling")
        sibling = relative(harness, handle, "a")
        await until_charged(sibling, "charge:a")
        await handle.signal("proceed")
        await until_status(sibling, WorkflowExecutionStatus.CANCELED)
        done = await harness.finish(relative(harness, handle))
    await finish_chain(harness, handle, flows.Household)
    assert "while children that unwind themselves still run" in caplog.text
    assert WORLD.of(sibling.id) == ["charge:a", "refund:a"]
    assert done.world[2:] == ["refund:next run", "refund:parent"]


@pytest.mark.parametrize(
    ("shape", "child", "undone"),
    [
        ("renews_beside_a_tour", ["charge:tour", "refund:tour"], []),
        ("renews_beside_a_stubborn_tour", ["charge:tour"], ["refund:tour"]),
    ],
)
async def test_h5_a_child_action_settles_before_its_parent_continues(
    harness: Harness, shape: str, child: list[str], undone: list[str]
) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, shape)
        tour = relative(harness, handle, "tour")
        await until_charged(tour, "charge:tour")
        await handle.signal("proceed")
        done = await harness.finish(relative(harness, handle))
    first, _ = await finish_chain(harness, handle, flows.Household)
    assert WORLD.of(tour.id) == child
    forward = ["charge:parent", "charge:next run"]
    assert [e for e in done.world if e.startswith("charge")][:2] == forward
    assert [e for e in done.world if e.startswith("refund")] == [
        "refund:next run",
        *undone,
        "refund:parent",
    ]
    events = names(await events_of(first))
    assert events.count("RequestCancelExternalWorkflowExecutionInitiated") == 1
    assert events[-1] == "WorkflowExecutionContinuedAsNew"
