"""Scenario rows about the order of undos, and about children that could not be undone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from temporalio.exceptions import ApplicationError, ChildWorkflowError

from agboss_temporal import CompensationReport
from tests.integration import case_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import Done, Handle, Harness, until_did, until_event


def spans(done: Done, activity: str) -> list[tuple[int, int]]:
    """List, for each call of an activity, the ids of its scheduled and its completed event."""
    completed = {
        e.activity_task_completed_event_attributes.scheduled_event_id: e.event_id
        for e in done.history.events
        if e.HasField("activity_task_completed_event_attributes")
    }
    return [
        (e.event_id, completed[e.event_id])
        for e in done.history.events
        if e.activity_task_scheduled_event_attributes.activity_type.name == activity
    ]


async def test_n1_undos_run_one_after_another_newest_first(harness: Harness) -> None:
    done = await harness.run(flows.Four)
    assert done.world[4:] == ["refund:d", "refund:c", "refund:b", "refund:a"]
    ids = [event_id for span in spans(done, "refund") for event_id in span]
    assert len(ids) == 8
    assert ids == sorted(ids)


async def test_n6_parallel_actions_are_undone_in_reverse_order_of_completion(
    harness: Harness,
) -> None:
    async def finish_c_then_a_then_b(handle: Handle) -> None:
        for number, item in enumerate("cab", 1):
            await until_did(handle, f"at:{handle.id}:{item}")
            WORLD.gate(f"{handle.id}:{item}").set()
            await until_event(handle, "ActivityTaskCompleted", number)

    done = await harness.run(flows.Fan, meanwhile=finish_c_then_a_then_b)
    effects = [e for e in done.world if not e.startswith("at:")]
    assert effects[:3] == ["charge:c", "charge:a", "charge:b"]
    assert effects[3:] == ["refund:b", "refund:a", "refund:c"]


@pytest.fixture
def _broken() -> Iterator[None]:
    WORLD.broken.add("n4-broken")
    yield
    WORLD.broken.discard("n4-broken")


@pytest.mark.usefixtures("_broken")
async def test_n4_a_parent_is_told_which_child_could_not_be_undone(harness: Harness) -> None:
    async with harness.worker([flows.HasBrokenChild, flows.BrokenChild]) as queue:
        handle = await harness.start(queue, flows.HasBrokenChild.run)
        done = await harness.finish(handle)
    child_id = f"{handle.id}-child"
    assert WORLD.of(child_id) == ["charge:fine", "charge:n4-broken", "refund:fine"]
    # The parent undid all of its own, so its error is the child's, unchanged.
    assert done.world == ["charge:parent", "refund:parent"]
    assert done.report.status == "completed"
    assert done.report.cause == "CompensationFailedError"
    assert isinstance(done.error, ChildWorkflowError)
    assert done.error.workflow_id == child_id
    assert isinstance(done.error.cause, ApplicationError)
    assert done.error.cause.type == "CompensationFailedError"
    report = CompensationReport.from_error(done.error)
    assert report is not None
    assert [(e.action, e.verdict) for e in report.entries] == [
        ("charge", "failed"),
        ("charge", "undone"),
    ]
