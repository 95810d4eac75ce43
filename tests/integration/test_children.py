"""Child workflows: as actions, as committers, and as units of their own (U5, U6, E1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ActivityError

from agboss_temporal import action
from tests.integration import child_flows as flows
from tests.support.acts import ACTIVITIES, WORLD, Receipt, refund
from tests.support.harness import Done, Handle, Harness, until, until_did

FAMILY: Sequence[type] = [flows.Parent, flows.BookTrip, flows.Known]


@action(compensate_with=refund, committed_by=flows.ShipAll)
@activity.defn
async def hold(item: str) -> Receipt:
    WORLD.did(f"hold:{item}")
    return Receipt(item)


async def family(harness: Harness, how: str, meanwhile: Any = None) -> tuple[Done, list[str]]:
    """Run a parent; return it and what its child did, and wait until the child is closed."""
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.Parent.run, how)
        if meanwhile is not None:
            await meanwhile(handle)
        done = await harness.finish(handle)
        return done, WORLD.of(handle.id + "-child")


def child_of(harness: Harness, handle: Handle) -> Handle:
    return harness.client.get_workflow_handle(handle.id + "-child")


async def test_n3_u5_a_finished_child_is_undone_as_its_contract_says(harness: Harness) -> None:
    done, child = await family(harness, "undoes_finished_child")
    assert child == ["charge:trip"]
    assert done.world == [
        "charge:parent",
        "charge:after",
        "refund:after",
        "refund:trip",
        "refund:parent",
    ]
    assert [v[0] for v in done.verdicts] == ["charge", "BookTrip", "charge"]


async def test_u5_a_child_called_by_name_is_an_action_too(harness: Harness) -> None:
    done, _ = await family(harness, "by_name")
    assert done.world == ["charge:parent", "refund:trip", "refund:parent"]


async def test_n3_u5_a_childs_finish_seals_what_it_did(harness: Harness) -> None:
    done, child = await family(harness, "finished_child_stays")
    assert child == ["charge:child"]
    assert done.world == ["charge:parent", "refund:parent"]


async def test_u5_a_child_that_fails_unwinds_before_its_parent_hears_of_it(
    harness: Harness,
) -> None:
    done, child = await family(harness, "child_fails")
    assert child == ["charge:child", "refund:child"]
    assert done.world == ["charge:parent", "refund:parent"]


async def test_a_child_action_that_fails_is_in_doubt(harness: Harness) -> None:
    done, child = await family(harness, "action_child_fails")
    assert done.result == "caught"
    assert child == ["charge:trip", "refund:trip"]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("BookTrip", "raised")]


async def test_e1_a_running_child_unwinds_before_its_parent(harness: Harness) -> None:
    async def fail(handle: Handle) -> None:
        await until_did(child_of(harness, handle), "charge:child")
        await handle.signal("go")

    done, child = await family(harness, "child_runs", fail)
    assert child == ["charge:child", "refund:child"]
    assert done.world == ["charge:parent", "refund:parent"]
    settled = done.events.index("ChildWorkflowExecutionCanceled")
    assert "ActivityTaskScheduled" in done.events[settled:]
    assert isinstance(done.error, ActivityError)


async def test_c3_a_child_whose_start_is_pending_unwinds_too(harness: Harness) -> None:
    done, child = await family(harness, "child_is_starting")
    assert done.status == "FAILED"
    assert child in ([], ["charge:child", "refund:child"])
    assert done.world == ["charge:parent", "refund:parent"]


async def test_e1_a_cancel_reaches_the_child_action_and_waits_for_it(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        await until_did(child_of(harness, handle), "charge:trip")
        await handle.cancel()

    done, child = await family(harness, "action_child_runs", cancel)
    assert done.status == "CANCELED"
    assert child == ["charge:trip", "refund:trip"]
    assert done.world == ["charge:parent", "refund:parent"]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("BookTrip", "cancelled")]
    assert done.events.count("RequestCancelExternalWorkflowExecutionInitiated") == 1


async def test_u6_a_terminated_parent_lets_its_child_unwind(harness: Harness) -> None:
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.Parent.run, "child_runs")
        child = child_of(harness, handle)
        await until_did(child, "charge:child")
        await handle.terminate()

        async def closed() -> bool:
            description = await child.describe()
            return description.status == WorkflowExecutionStatus.CANCELED

        await until(closed)
    assert WORLD.of(child.id) == ["charge:child", "refund:child"]


async def test_u6_an_abandoned_child_goes_on_and_that_is_said(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.Parent.run, "abandoned_child")
        done = await harness.finish(handle)
        child = child_of(harness, handle)
        description = await child.describe()
        assert description.status == WorkflowExecutionStatus.RUNNING
        await child.cancel()
        await harness.client.get_workflow_handle(child.id).describe()
    assert done.world == ["charge:parent", "refund:parent"]
    told = [r.getMessage() for r in caplog.records if "ABANDON" in r.getMessage()]
    assert told
    assert all("Known" in message for message in told)


async def test_u6_an_abandoned_action_child_is_reported(harness: Harness) -> None:
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.Parent.run, "abandoned_action_child")
        done = await harness.finish(handle)
        child = child_of(harness, handle)
        description = await child.describe()
        assert description.status == WorkflowExecutionStatus.RUNNING
        await child.terminate()
    assert done.world == ["charge:parent", "refund:parent"]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("BookTrip", "abandoned")]


async def test_a_child_can_be_the_committer(harness: Harness) -> None:
    workflows = [flows.CommittedByChild, flows.ShipAll]
    async with harness.worker(workflows, [*ACTIVITIES, hold]) as queue:
        done = await harness.finish(await harness.start(queue, flows.CommittedByChild.run))
    assert done.world == ["hold:a"]
    assert done.report.status == "none"


async def test_what_is_sealed_stays_and_what_came_later_goes(harness: Harness) -> None:
    done = await harness.run(flows.TwoLevels)
    assert done.world == ["reserve:a", "ship:a", "charge:b", "refund:b"]
