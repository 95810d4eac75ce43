"""Children at bad moments: who unwinds, in which order, and who is left alone (U5, U6, E1)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from temporalio.client import (
    WorkflowExecutionStatus,
)
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError

from tests.integration import family_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.families import relative, status_of, until_charged, until_status
from tests.support.harness import (
    Done,
    Harness,
    events_of,
    names,
    until_did,
    until_event,
)

ALL: Sequence[type] = [flows.Member, flows.Household, flows.Sibling, flows.Tour]
ORDERS = ["complete first", "cancel first"]


def error_type(done: Done) -> str | None:
    error = done.error
    while isinstance(error, (ActivityError, ChildWorkflowError)):
        error = error.cause
    assert isinstance(error, ApplicationError)
    return error.type


LEVELS = [f"charge:level {n}" for n in range(3)]


# -- grandchildren


@pytest.mark.parametrize("how", ["fail", "cancel"])
async def test_u5_three_generations_unwind_inside_out(harness: Harness, how: str) -> None:
    async with harness.worker(ALL) as queue:
        told = "wait" if how == "cancel" else how
        handle = await harness.start(queue, flows.Member.run, told, 2)
        if how == "cancel":
            await until_charged(relative(harness, handle, "child", "child"), LEVELS[2])
            await handle.cancel()
        done = await harness.finish(handle)
    assert done.status == ("CANCELED" if how == "cancel" else "FAILED")
    assert WORLD.across(handle.id) == LEVELS + [f"refund:level {n}" for n in (2, 1, 0)]
    if how == "fail":
        assert error_type(done) == "Boom"
        assert done.report.cause == "Boom"


async def test_u6_a_terminated_grandparent_lets_two_generations_unwind(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Member.run, "wait", 2)
        await until_charged(relative(harness, handle, "child", "child"), LEVELS[2])
        await handle.terminate()
        await until_status(relative(harness, handle, "child"), WorkflowExecutionStatus.CANCELED)
        grandchild = relative(harness, handle, "child", "child")
        assert await status_of(grandchild) == WorkflowExecutionStatus.CANCELED
    assert WORLD.across(handle.id) == [*LEVELS, "refund:level 2", "refund:level 1"]


async def test_u6_a_terminated_parent_lets_its_child_action_unwind(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "nested_tour")
        tour = relative(harness, handle, "tour")
        await until_charged(relative(harness, tour, "guide"), "charge:guide")
        await handle.terminate()
        await until_status(tour, WorkflowExecutionStatus.CANCELED)
        assert await status_of(relative(harness, tour, "guide")) == (
            WorkflowExecutionStatus.CANCELED
        )
    assert WORLD.across(handle.id) == [
        "charge:parent",
        "charge:tour",
        "charge:guide",
        "refund:guide",
        "refund:tour",
    ]


# -- siblings


@pytest.mark.parametrize("shape", ["gathered", "grouped"])
async def test_e1_a_child_fails_while_its_sibling_runs(harness: Harness, shape: str) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, shape)
        for name in "ab":
            await until_charged(relative(harness, handle, name), f"charge:{name}")
        await relative(harness, handle, "b").signal("proceed")
        done = await harness.finish(handle)
        assert await status_of(relative(harness, handle, "a")) == WorkflowExecutionStatus.CANCELED
    assert done.status == "FAILED"
    assert error_type(done) == "Boom"
    assert WORLD.across(handle.id)[3:] == ["refund:b", "refund:a", "refund:parent"]
    assert done.events.count("RequestCancelExternalWorkflowExecutionInitiated") == 1


async def test_e1_a_group_cancels_its_children_and_they_unwind_first(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "group_fails_itself")
        await until_charged(relative(harness, handle, "a"), "charge:a")
        await until_charged(relative(harness, handle, "tour"), "charge:tour")
        await handle.signal("proceed")
        done = await harness.finish(handle)
    assert error_type(done) == "Boom"
    undone = WORLD.across(handle.id)[3:]
    assert sorted(undone[:2]) == ["refund:a", "refund:tour"]
    assert undone[2:] == ["refund:parent"]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("Tour", "cancelled")]


async def test_u5_children_and_activities_are_undone_in_order_of_completion(
    harness: Harness,
) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "two_tours")
        await until_charged(relative(harness, handle, "tour"), "charge:tour")
        await relative(harness, handle, "between").signal("proceed")
        await until_did(handle, "charge:after")
        await until_event(handle, "ActivityTaskCompleted", 2)
        await relative(harness, handle, "tour").signal("proceed")
        done = await harness.finish(handle)
    assert done.world[2:] == ["refund:tour", "refund:after", "refund:parent"]
    assert WORLD.of(f"{handle.id}-between") == ["charge:between"]


# -- children that end at a bad moment


async def test_e1_a_child_that_completes_in_spite_of_the_cancel_is_undone(
    harness: Harness,
) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "stubborn")
        tour = relative(harness, handle, "tour")
        await until_charged(tour, "charge:tour")
        await handle.signal("proceed")
        done = await harness.finish(handle)
        assert await status_of(tour) == WorkflowExecutionStatus.COMPLETED
    assert "ChildWorkflowExecutionCompleted" in done.events
    assert done.world == ["charge:parent", "refund:tour", "refund:parent"]
    assert WORLD.of(tour.id) == ["charge:tour"]
    assert done.verdicts == [("Tour", "undone"), ("charge", "undone")]
    assert error_type(done) == "Boom"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", ["takes_a_tour", "gathers_a_tour", "tour_in_a_group"])
async def test_c1_a_child_completes_in_the_task_in_which_its_parent_is_cancelled(
    harness: Harness, shape: str, order: str
) -> None:
    async with harness.worker([flows.Tour], ACTIVITIES) as children:
        async with harness.worker([flows.Household]) as queue:
            handle = await harness.start(queue, flows.Household.run, shape, children)
            tour = relative(harness, handle, "tour")
            await until_charged(tour, "charge:tour")
            await until_event(handle, "ChildWorkflowExecutionStarted")
            await until_event(handle, "WorkflowTaskCompleted", 3)
        if order == "cancel first":
            await handle.cancel()
        await tour.signal("proceed")
        await until_event(handle, "ChildWorkflowExecutionCompleted")
        if order == "complete first":
            await handle.cancel()
        async with harness.worker([flows.Household], queue=queue):
            done = await harness.finish(handle)
    assert_one_task_saw_both(order, done)
    assert done.status == "CANCELED"
    assert done.world == ["charge:parent", "refund:tour", "refund:parent"]
    assert WORLD.of(tour.id) == ["charge:tour"]
    assert done.report.in_doubt == ()


def assert_one_task_saw_both(order: str, done: Done) -> None:
    cancelled = done.events.index("WorkflowExecutionCancelRequested")
    completed = done.events.index("ChildWorkflowExecutionCompleted")
    assert (order == "cancel first") == (cancelled < completed)
    first, second = sorted((cancelled, completed))
    assert "WorkflowTaskStarted" not in done.events[first:second]


async def test_u6_abandoned_children_go_on_and_the_action_among_them_is_reported(
    harness: Harness,
) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, flows.Household.run, "abandons")
        left = [relative(harness, handle, name) for name in ("plain", "left")]
        await until_charged(left[0], "charge:tour")
        await until_charged(left[1], "charge:left")
        await handle.signal("proceed")
        done = await harness.finish(handle)
        for child in left:
            await child.signal("proceed")
            await until_status(child, WorkflowExecutionStatus.COMPLETED)
            assert "WorkflowExecutionCancelRequested" not in names(await events_of(child))
    assert done.world == ["charge:parent", "refund:parent"]
    assert "RequestCancelExternalWorkflowExecutionInitiated" not in done.events
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("Tour", "abandoned")]
