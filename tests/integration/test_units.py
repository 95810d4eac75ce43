"""A unit is undone by itself when an exception leaves it, and only it (rule U1)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from temporalio.exceptions import ActivityError, ApplicationError

from tests.integration.unit_flows import Caller, OptedOut, Units
from tests.support.acts import WORLD
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    records,
    until_did,
    until_event,
    until_observed,
)


@pytest.fixture(autouse=True)
def _gates() -> Iterator[None]:
    yield
    WORLD.gates.clear()


def effects(done: Done) -> list[str]:
    return [e for e in done.world if not e.startswith("at:")]


async def test_u1_an_except_around_a_unit_needs_no_undo(harness: Harness) -> None:
    done = await harness.run(Units, "caught")
    assert effects(done) == [
        "charge:before",
        "charge:inside",
        "charge:too",
        "refund:too",
        "refund:inside",
        "note:caught ApplicationError",
        "charge:after",
    ]
    assert done.result == "completed"
    [unwind] = done.report.unwinds
    assert (unwind.trigger, unwind.cause, unwind.unit) == ("explicit", "Boom", "gift")
    assert "MarkerRecorded" not in done.events


async def test_u1_a_later_failure_undoes_only_what_is_still_open(harness: Harness) -> None:
    done = await harness.run(Units, "caught_then_fails")
    assert effects(done)[-2:] == ["refund:after", "refund:before"]
    assert [e.count("refund:") for e in effects(done)].count(1) == 4
    assert isinstance(done.error, ActivityError)


async def test_u1_every_exception_counts(harness: Harness) -> None:
    done = await harness.run(Units, "own_error")
    assert effects(done) == ["charge:inside", "refund:inside", "note:caught"]
    assert done.result == "went on"


async def test_n2_the_inner_unit_is_undone_by_the_inner_and_not_again(harness: Harness) -> None:
    done = await harness.run(Units, "nested")
    assert effects(done) == [
        "charge:outer",
        "charge:inner",
        "refund:inner",
        "note:inner failed",
        "charge:outer again",
        "refund:outer again",
        "refund:outer",
    ]
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "OuterFailed"
    assert [u.unit for u in done.report.unwinds] == ["inner", "outer"]


async def test_u1_a_normal_exit_hands_over(harness: Harness) -> None:
    done = await harness.run(Units, "handed_over")
    assert effects(done)[-2:] == ["refund:shallow", "refund:deep"]
    assert [r.unit for r in records(done, "charge")] == [(1, 1), (1,)]


async def test_u1_a_sealed_round_is_never_undone_and_history_shows_it(harness: Harness) -> None:
    done = await harness.run(Units, "sealed_rounds")
    assert effects(done)[-1] == "refund:rest"
    assert [e for e in effects(done) if e.startswith("refund")] == ["refund:rest"]
    assert done.events.count("WorkflowPropertiesModified") == 3


async def test_u1_around_a_task_group(harness: Harness) -> None:
    done = await harness.run(Units, "around_a_group")
    assert done.result == ["group"]
    assert sorted(effects(done)) == ["charge:one", "charge:two", "refund:one", "refund:two"]


async def test_u1_what_gather_leaves_running_settles_first(harness: Harness) -> None:
    async def let_it_end(handle: Handle) -> None:
        await until_did(handle, f"at:{handle.id}")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(Units, "around_gather", meanwhile=let_it_end)
    assert effects(done) == ["charge:slow", "refund:slow", "note:caught"]


@pytest.mark.parametrize("how", ["inside_a_timeout", "around_a_timeout"])
async def test_u1_with_a_timeout(skipping: Harness, how: str) -> None:
    done = await skipping.run(Units, how)
    assert effects(done) == ["charge:inside", "refund:inside", "note:timed out"]
    assert done.result == "went on"


async def test_u1_a_cancel_undoes_the_unit_and_then_the_run(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        await until_observed(handle, 2)
        await handle.cancel()

    done = await harness.run(Units, "cancelled_inside", meanwhile=cancel)
    assert done.status == "CANCELED"
    assert effects(done)[-2:] == ["refund:inside", "refund:before"]
    assert [u.trigger for u in done.report.unwinds] == ["explicit", "run-cancel"]


async def test_u1_a_cancel_while_it_is_undone_is_not_lost(harness: Harness) -> None:
    run_id = f"unit-{uuid.uuid4().hex[:8]}"
    gate = WORLD.gate(f"refund:{run_id}")
    async with harness.worker([Units]) as queue:
        handle = await harness.start(queue, Units.run, "cancelled_during_its_undo", id=run_id)
        await until_did(handle, f"at:refund:{run_id}")
        await handle.cancel()
        await until_event(handle, "WorkflowExecutionCancelRequested")
        gate.set()
        done = await harness.finish(handle)
    assert done.status == "CANCELED"
    assert effects(done) == [f"charge:{run_id}", f"refund:{run_id}"]


async def test_u3_compensate_undoes_the_current_unit_only(harness: Harness) -> None:
    done = await harness.run(Units, "compensates")
    assert effects(done) == ["charge:before", "charge:inside", "refund:inside", "charge:again"]
    assert done.result == "completed"


async def test_u1_an_undo_by_hand_is_not_repeated(harness: Harness) -> None:
    done = await harness.run(Units, "by_hand_inside")
    assert effects(done)[2:] == ["refund:first", "refund:second"]


async def test_u1_what_outlives_its_unit_belongs_to_the_run(harness: Harness) -> None:
    done = await harness.run(Units, "outlived")
    assert effects(done)[2:] == ["refund:late", "refund:inside"]
    assert [r.unit for r in records(done, "charge")] == [(1,), ()]


async def test_u1_what_runs_when_it_ends_is_handed_over(harness: Harness) -> None:
    async def let_it_end(handle: Handle) -> None:
        await until_observed(handle)
        WORLD.gate(handle.id).set()

    done = await harness.run(Units, "running_when_it_ends", meanwhile=let_it_end)
    assert effects(done)[2:] == ["refund:slow", "refund:fast"]


async def test_e6_other_units_go_on(harness: Harness) -> None:
    run_id = f"unit-{uuid.uuid4().hex[:8]}"
    gate = WORLD.gate(f"refund:{run_id}")
    async with harness.worker([Units]) as queue:
        handle = await harness.start(queue, Units.run, "side_by_side", id=run_id)
        await until_did(handle, f"at:refund:{run_id}")
        WORLD.gate(f"{run_id}-other").set()
        await until_did(handle, "charge:other too")
        gate.set()
        done = await harness.finish(handle)
    assert done.result == ["failed", "worked"]
    assert "refund:other" not in done.world
    assert "ActivityTaskCancelRequested" not in done.events


async def test_e6_units_are_undone_side_by_side(harness: Harness) -> None:
    run_id = f"unit-{uuid.uuid4().hex[:8]}"
    gate = WORLD.gate(f"refund:{run_id}")
    async with harness.worker([Units]) as queue:
        handle = await harness.start(queue, Units.run, "both_undone", id=run_id)
        await until_did(handle, f"at:refund:{run_id}")
        await until_did(handle, "refund:quick")
        gate.set()
        done = await harness.finish(handle)
    assert done.status == "COMPLETED"
    assert done.verdicts.count(("charge", "undone")) == 2


async def test_e6_nothing_starts_in_a_unit_that_is_undone(harness: Harness) -> None:
    run_id = f"unit-{uuid.uuid4().hex[:8]}"
    gate = WORLD.gate(f"refund:{run_id}")
    async with harness.worker([Units]) as queue:
        handle = await harness.start(queue, Units.run, "starts_during_its_unwind", id=run_id)
        await until_did(handle, f"at:refund:{run_id}")
        await handle.signal("proceed")
        await until_event(handle, "WorkflowTaskCompleted", 4)
        gate.set()
        done = await harness.finish(handle)
    assert done.result == "UnwindInProgress"
    assert "charge:late" not in done.world


@pytest.fixture
def broken() -> Iterator[None]:
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")


@pytest.mark.usefixtures("broken")
async def test_e5_an_undo_that_gives_up_in_a_unit_is_not_forgotten(harness: Harness) -> None:
    done = await harness.run(Units, "undo_fails_inside")
    assert (done.status, done.result) == ("COMPLETED", "failed")
    assert effects(done) == ["charge:broken", "note:caught"]
    done = await harness.run(Units, "undo_fails_inside_then_fails")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "CompensationFailedError"
    assert done.report.status == "failed"


async def test_r9_a_later_unit_commits_what_was_handed_over(harness: Harness) -> None:
    done = await harness.run(Units, "committer_of_a_sibling")
    assert effects(done) == ["reserve:a", "ship:a"]
    [record] = records(done, "ship")
    assert (record.unit, record.ended) == ((2,), ((1,),))


async def test_r9_an_open_unit_is_not_committed_from_beside_it(harness: Harness) -> None:
    done = await harness.run(Units, "committer_beside")
    assert effects(done)[-1] == "release:a"


async def test_u4_what_a_unit_opened_is_carried_by_continue_as_new(harness: Harness) -> None:
    done = await run_on(harness, "continues")
    assert effects(done) == ["charge:carried", "refund:carried"]


async def test_the_seal_leaves_no_trace_in_the_next_run(harness: Harness) -> None:
    done = await run_on(harness, "seals_and_continues")
    assert done.result == []


async def run_on(harness: Harness, how: str) -> Done:
    async with harness.worker([Units]) as queue:
        first = await harness.start(queue, Units.run, how)
        return await harness.finish(harness.client.get_workflow_handle(first.id))


async def test_units_do_not_pile_up(harness: Harness) -> None:
    done = await harness.run(Units, "many_units")
    assert done.result == 0
    assert done.report.entries == ()


async def test_a_long_wait_inside(skipping: Harness) -> None:
    done = await skipping.run(Units, "waits_inside")
    assert effects(done) == ["charge:inside", "refund:inside"]


async def test_a_class_that_opts_out_has_nothing_undone(harness: Harness) -> None:
    done = await harness.run(OptedOut)
    assert done.result == "nothing undone"
    assert effects(done) == ["charge:not recorded"]


async def test_e1_a_child_in_a_unit_unwinds_before_it(harness: Harness) -> None:
    async with harness.worker([Caller, Units]) as queue:
        handle = await harness.start(queue, Caller.run)
        child = harness.client.get_workflow_handle(f"{handle.id}-child")
        await until_did(child, "charge:inside")
        await until_event(child, "ActivityTaskCompleted", 2)
        WORLD.gate(handle.id).set()
        done = await harness.finish(handle)
    assert effects(done) == ["charge:parent", "refund:parent", "note:caught"]
    assert WORLD.of(child.id)[2:] == ["refund:inside", "refund:before"]
    assert done.events.index("ChildWorkflowExecutionCanceled") < done.events.index(
        "ActivityTaskScheduled", done.events.index("ActivityTaskFailed")
    )
    assert done.result == "went on"
