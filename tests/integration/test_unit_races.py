"""Parts of a run that end at the same time as the run, or as calls that decide about them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from tests.integration.unit_race_flows import OptedOutBug, Races
from tests.support.acts import WORLD
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    records,
    until_did,
    until_event,
    until_observed,
    until_scheduled,
)

ACCEPTED = WorkflowUpdateStage.ACCEPTED


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    WORLD.gates.clear()
    WORLD.broken.clear()


def effects(done: Done) -> list[str]:
    return [e for e in done.world if not e.startswith("at:")]


@pytest.mark.parametrize("how", ["returns_when_woken", "renews_when_woken"])
async def test_a_run_that_ends_in_the_same_turn_waits_for_a_failing_update(
    harness: Harness, how: str
) -> None:
    async with harness.worker([Races]) as queue:
        handle = await harness.start(queue, Races.run, how)
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Races.wakes_and_fails)
        done = await harness.finish(harness.client.get_workflow_handle(handle.id))
    assert effects(done) == ["charge:x", "refund:x"]


async def test_a_run_that_returns_in_the_same_turn_waits_for_a_failing_unit(
    harness: Harness,
) -> None:
    done = await harness.run(Races, "unit_fails_beside_the_end")
    assert effects(done) == ["charge:x", "refund:x"]
    assert done.result == "returned"


async def test_an_update_that_fails_while_the_run_continues_is_undone(harness: Harness) -> None:
    async with harness.worker([Races]) as queue:
        handle = await harness.start(queue, Races.run, "renews_when_told")
        update = await handle.start_update(Races.charges_twice_and_fails, wait_for_stage=ACCEPTED)
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("proceed")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()
        first = harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        await until_event(first, "WorkflowExecutionContinuedAsNew")
        with pytest.raises(WorkflowUpdateFailedError):
            await update.result()
        done = await harness.finish(harness.client.get_workflow_handle(handle.id))
    assert done.result == "renewed"
    assert effects(done)[2:] == ["refund:second", "refund:first"]


async def test_a_run_that_ends_uncommitted_stops_its_handlers_and_undoes_theirs(
    harness: Harness,
) -> None:
    async with harness.worker([Races]) as queue:
        handle = await harness.start(queue, Races.run, "uncommitted_when_told")
        update = await handle.start_update(Races.charges_and_hangs, wait_for_stage=ACCEPTED)
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("proceed")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()
        with pytest.raises(WorkflowUpdateFailedError):
            await update.result()
        done = await harness.finish(handle)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "UncommittedActionError"
    assert effects(done)[-3:] == ["refund:y", "refund:x", "release:a"]
    assert done.report.status == "completed"
    assert [u.trigger for u in done.report.unwinds] == ["handler", "node-failure"]


async def test_a_run_that_returns_is_failed_by_a_signal_handler_while_it_waits(
    harness: Harness,
) -> None:
    async with harness.worker([Races]) as queue:
        run_id = f"waits-{id(harness)}"
        undoing = WORLD.gate("refund:of the update")
        handle = await harness.start(queue, Races.run, "waits", id=run_id)
        await handle.signal(Races.fails_when_signalled)
        await until_did(handle, "charge:of the signal")
        update = await handle.start_update(
            Races.lets_the_run_return_and_fails, wait_for_stage=ACCEPTED
        )
        await until_scheduled(handle, "refund")
        await handle.signal(Races.end)
        await until_observed(handle, 2, "WorkflowExecutionSignaled")
        undoing.set()
        with pytest.raises(WorkflowUpdateFailedError):
            await update.result()
        done = await harness.finish(handle)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "Refused"
    assert effects(done)[2:] == ["refund:of the update", "refund:of the signal"]
    assert done.report.status == "completed"


async def test_an_update_whose_result_cannot_be_sent_is_undone(harness: Harness) -> None:
    async with harness.worker([Races]) as queue:
        handle = await harness.start(queue, Races.run, "waits")
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Races.returns_what_cannot_be_sent)
        await handle.signal("proceed")
        done = await harness.finish(handle)
    assert effects(done) == ["charge:x", "refund:x"]


async def test_r8_a_unit_waits_for_an_undo_called_from_outside(harness: Harness) -> None:
    async def undo_fails(handle: Handle) -> None:
        await until_did(handle, f"charge:{handle.id}")
        await until_observed(handle)
        await handle.signal("proceed")
        await until_event(handle, "WorkflowExecutionSignaled")
        WORLD.broken.add(handle.id)
        WORLD.gate(f"refund:{handle.id}").set()
        await until_event(handle, "ActivityTaskFailed")
        WORLD.broken.clear()

    async with harness.worker([Races]) as queue:
        run_id = f"race-{id(harness)}"
        WORLD.gate(f"refund:{run_id}")
        handle = await harness.start(queue, Races.run, "undone_from_outside", id=run_id)
        await undo_fails(handle)
        done = await harness.finish(handle)
    closed = [e for e in done.history.events if e.HasField("activity_task_failed_event_attributes")]
    assert len(closed) >= 1
    assert done.events.index("ActivityTaskFailed") < len(done.events)
    assert effects(done)[-1] == "note:unit over"


@pytest.mark.parametrize("handler", [False, True])
async def test_r9_what_is_undone_waits_for_a_committer_outside(
    harness: Harness, handler: bool
) -> None:
    how = "ships_when_woken" if handler else "committed_from_outside"
    async with harness.worker([Races]) as queue:
        handle = await harness.start(queue, Races.run, how)
        if handler:
            await handle.start_update(Races.reserves_and_fails, wait_for_stage=ACCEPTED)
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("proceed")
        await until_event(handle, "WorkflowExecutionSignaled")
        await until_event(handle, "WorkflowTaskCompleted", 3)
        WORLD.gate(handle.id).set()
        done = await harness.finish(handle)
    assert effects(done)[:2] == ["reserve:a", "ship:a"]
    assert "release:a" not in effects(done)
    assert done.result == "shipped"


async def test_what_a_call_was_to_tell_that_was_never_sent_another_one_tells(
    harness: Harness,
) -> None:
    async with harness.worker([Races]) as queue:
        handle = await harness.start(queue, Races.run, "waits")
        await handle.execute_update(Races.first_call_never_sent)
        await handle.signal("proceed")
        done = await harness.finish(handle)
    assert [record.update is not None for record in records(done, "charge")] == [True]
    done = await harness.run(Races, "committer_never_sent")
    assert done.result == "shipped"
    assert [record.ended for record in records(done, "ship")] == [((1,),)]


async def test_u2_what_is_no_failure_passes_through_a_join(harness: Harness) -> None:
    assert (await harness.run(Races, "odd_branch")).result == "passed on"


async def test_u2_a_bug_in_a_branch_is_a_bug_also_where_the_class_opts_out(
    harness: Harness,
) -> None:
    async with harness.worker([OptedOutBug]) as queue:
        handle = await harness.start(queue, OptedOutBug.run)
        await until_event(handle, "WorkflowTaskFailed")
        await handle.terminate()
