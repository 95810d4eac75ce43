"""Handlers are units of their own (rule U4)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from temporalio.client import (
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensationPolicy, CompensationReport
from agboss_temporal.core.wire import update_digest
from agboss_temporal.plugin import CompensationPlugin
from tests.integration.handler_flows import Entity, Handled
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

ACCEPTED = WorkflowUpdateStage.ACCEPTED


@pytest.fixture(autouse=True)
def _gates() -> Iterator[None]:
    yield
    WORLD.gates.clear()


def effects(done: Done) -> list[str]:
    return [e for e in done.world if not e.startswith("at:")]


@asynccontextmanager
async def running(harness: Harness, first: str | None = None) -> AsyncIterator[Handle]:
    async with harness.worker([Handled]) as queue:
        handle = await harness.start(queue, Handled.run, first)
        if first is not None:
            await until_did(handle, f"charge:{first}")
        yield handle


async def test_u4_a_failing_update_is_undone_before_its_caller_is_told(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        with pytest.raises(WorkflowUpdateFailedError) as refusal:
            await handle.execute_update(Handled.bad, "x")
        seen = WORLD.of(handle.id)
        assert isinstance(refusal.value.cause, ActivityError)
        assert seen == ["charge:main", "charge:x", "charge:x too", "refund:x too", "refund:x"]
        await handle.signal("end", "return")
        done = await harness.finish(handle)
    assert done.result == "completed"
    assert effects(done) == seen
    [unwind] = done.report.unwinds
    assert (unwind.trigger, unwind.cause, unwind.unit) == ("handler", "Boom", "bad")
    assert done.events.count("MarkerRecorded") == 1


async def test_u4_what_a_returning_update_did_is_never_undone(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        assert await handle.execute_update(Handled.good, "told") == "told"
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert effects(done) == ["charge:main", "charge:told", "refund:main"]


async def test_u4_what_waits_for_a_committer_passes_to_the_run(harness: Harness) -> None:
    async with running(harness) as handle:
        await handle.execute_update(Handled.holds, "kept")
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert effects(done) == ["reserve:kept", "charge:kept", "release:kept"]


async def test_u4_the_run_commits_what_an_update_left_open(harness: Harness) -> None:
    async with running(harness) as handle:
        await handle.execute_update(Handled.holds, "kept")
        await handle.signal("end", "ship")
        done = await harness.finish(handle)
    assert effects(done) == ["reserve:kept", "charge:kept", "ship:all"]


async def test_u4_a_record_says_which_update_it_belongs_to(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        await handle.execute_update(Handled.holds, "a", id="first")
        await handle.execute_update(Handled.good, "b", id="second")
        await handle.signal("end", "return")
        done = await harness.finish(handle)
    [held] = records(done, "reserve")
    main, with_it, other = records(done, "charge")
    assert (held.unit, held.update) == ((1,), update_digest("first"))
    assert (main.unit, main.update) == ((), None)
    assert (with_it.unit, with_it.update) == ((1,), None)
    assert (other.unit, other.update) == ((2,), update_digest("second"))


async def test_h1_a_cancel_reaches_an_update_at_work(
    harness: Harness, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    async with running(harness, "main") as handle:
        update = await handle.start_update(Handled.waits, "x", wait_for_stage=ACCEPTED)
        await until_observed(handle, 2)
        await handle.cancel()
        with pytest.raises(WorkflowUpdateFailedError):
            await update.result()
        done = await harness.finish(handle)
    assert done.status == "CANCELED"
    assert effects(done)[2:] == ["refund:x", "refund:main"]
    assert [u.trigger for u in done.report.unwinds] == ["handler", "run-cancel"]
    assert done.events.count("MarkerRecorded") == 1
    assert "WorkflowExecutionUpdateCompleted" in done.events
    assert not [w for w in recwarn if "unfinished" in str(w.message).lower()]
    assert "TMPRL1102" not in caplog.text


@pytest.mark.parametrize("handler", ["cleans_up", "signal_waits"])
async def test_u4_a_handler_at_work_when_the_run_fails(harness: Harness, handler: str) -> None:
    async with running(harness, "main") as handle:
        if handler == "cleans_up":
            await handle.start_update(handler, "x", wait_for_stage=ACCEPTED)
        else:
            await handle.signal(handler, "x")
        await until_observed(handle, 2)
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "MainFailed"
    noted = ["note:cleaned up x"] if handler == "cleans_up" else []
    assert effects(done)[2:] == [*noted, "refund:x", "refund:main"]
    assert done.report.also_failed == ()


async def test_u4_its_action_settles_before_it_is_undone(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        await handle.start_update(Handled.gated, "x", wait_for_stage=ACCEPTED)
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("end", "fail")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()
        done = await harness.finish(handle)
    assert effects(done) == ["charge:main", "charge:x", "refund:x", "refund:main"]


async def test_u4_a_handler_that_may_be_abandoned_is_not_waited_for(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        await handle.start_update(Handled.waits_abandoned, "x", wait_for_stage=ACCEPTED)
        await until_observed(handle, 2)
        await handle.cancel()
        done = await harness.finish(handle)
    assert done.status == "CANCELED"
    assert sorted(effects(done)[2:]) == ["refund:main", "refund:x"]


@pytest.mark.filterwarnings("ignore:.*TMPRL1102")
async def test_r5_a_run_that_has_nothing_to_undo_leaves_handlers_alone(harness: Harness) -> None:
    async with running(harness) as handle:
        await handle.start_update(Handled.idle, wait_for_stage=ACCEPTED)
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert "WorkflowExecutionUpdateCompleted" not in done.events
    assert "MarkerRecorded" not in done.events


async def test_u4_units_inside_a_handler(harness: Harness) -> None:
    async with running(harness) as handle:
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Handled.parts)
        assert WORLD.of(handle.id)[2:] == ["refund:beside it", "refund:in the part"]
        await handle.signal("end", "return")
        await harness.finish(handle)


async def test_u4_a_group_of_failures_fails_the_update_with_the_first(harness: Harness) -> None:
    async with running(harness) as handle:
        with pytest.raises(WorkflowUpdateFailedError) as refusal:
            await handle.execute_update(Handled.grouped)
        assert isinstance(refusal.value.cause, ActivityError)
        assert WORLD.of(handle.id) == ["charge:one", "refund:one"]
        await handle.signal("end", "return")
        await harness.finish(handle)


async def test_u4_a_bug_in_a_handler_undoes_nothing(harness: Harness) -> None:
    async with running(harness) as handle:
        await handle.start_update(Handled.buggy, wait_for_stage=ACCEPTED)
        await until_event(handle, "WorkflowTaskFailed")
        assert WORLD.of(handle.id) == ["charge:kept"]
        await handle.terminate()


async def test_u4_an_undo_that_gives_up_is_told_to_the_caller(harness: Harness) -> None:
    WORLD.broken.add("broken")
    try:
        async with running(harness) as handle:
            with pytest.raises(WorkflowUpdateFailedError) as refusal:
                await handle.execute_update(Handled.bad, "broken")
            await handle.signal("end", "return")
            await harness.finish(handle)
    finally:
        WORLD.broken.discard("broken")
    assert isinstance(refusal.value.cause, ApplicationError)
    assert refusal.value.cause.type == "CompensationFailedError"
    report = CompensationReport.from_error(refusal.value)
    assert report is not None
    assert report.status == "partial"


async def test_u4_a_signal_hands_over_to_the_run(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        await handle.signal("adds", "x")
        await until_observed(handle, 2)
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert effects(done)[2:] == ["refund:x", "refund:main"]
    assert [u.trigger for u in done.report.unwinds] == ["node-failure"]


async def test_u4_a_failing_signal_is_undone_before_the_run(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        await until_observed(handle)
        await handle.signal("breaks", "x")
        done = await harness.finish(handle)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "SignalFailed"
    assert effects(done)[2:] == ["refund:x", "refund:main"]
    assert [u.trigger for u in done.report.unwinds] == ["handler", "node-failure"]
    assert done.events.count("MarkerRecorded") == 1


async def test_u4_handlers_unwind_whatever_the_policy_lists(harness: Harness) -> None:
    policy = CompensationPolicy(triggers=frozenset({"run-cancel"}))
    harness = harness.with_(plugin=CompensationPlugin(policy=policy))
    async with running(harness, "main") as handle:
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(Handled.bad, "x")
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert effects(done)[-2:] == ["refund:x too", "refund:x"]


async def test_u4_a_handler_that_continues_as_new_hands_over(harness: Harness) -> None:
    async with running(harness, "main") as handle:
        await until_observed(handle)
        await handle.signal("renews", "x")
        renewed = harness.client.get_workflow_handle(handle.id)
        await until_did(handle, "charge:renewed")
        await renewed.signal("end", "fail")
        done = await harness.finish(renewed)
    assert effects(done)[3:] == ["refund:renewed", "refund:x", "refund:main"]


async def test_u4_an_update_in_the_first_task(harness: Harness) -> None:
    run_id = f"handled-{uuid.uuid4().hex[:8]}"
    async with harness.worker([Handled]) as queue:
        start = WithStartWorkflowOperation(
            Handled.run,
            "main",
            id=run_id,
            task_queue=queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        )
        with pytest.raises(WorkflowUpdateFailedError):
            await harness.client.execute_update_with_start_workflow(
                Handled.bad, "x", start_workflow_operation=start
            )
        handle = await start.workflow_handle()
        world = WORLD.of(run_id)
        assert [e for e in world if "x" in e][-2:] == ["refund:x too", "refund:x"]
        await handle.signal("end", "fail")
        done = await harness.finish(handle)
    assert effects(done)[-1] == "refund:main"


@pytest.mark.slow
async def test_u4_an_entity_that_lives_on_updates_does_not_grow(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    # Without the cache every update replays all before it.
    rounds, every = (500, 5) if harness.cache else (50, 2)
    async with harness.worker([Entity]) as queue:
        handle = await harness.start(queue, Entity.run)
        for number in range(rounds):
            fails = number % every == every - 1
            try:
                await handle.execute_update(Entity.change, args=[number, fails])
                assert not fails
            except WorkflowUpdateFailedError:
                assert fails
                assert WORLD.of(handle.id)[-1] == f"refund:item {number}"
        report = await handle.query("agboss.compensation", result_type=CompensationReport)
        await handle.cancel()
        done = await harness.finish(handle)
    assert (len(report.entries), len(report.unwinds), len(report.in_doubt)) == (20, 20, 0)
    assert report == done.report
    assert done.status == "CANCELED"
    failed = rounds // every
    assert len([e for e in done.world if e.startswith("refund:")]) == failed
    assert done.report.older_unwinds == failed - 20
    assert done.report.counts == {"undone": failed}
