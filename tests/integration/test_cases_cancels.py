"""Scenario rows about cancels: of children, of local calls, during approvals."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError

from tests.integration import case_flows as flows
from tests.integration.child_flows import BookTrip, Known
from tests.support.acts import WORLD
from tests.support.families import relative, status_of, until_status
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    events_of,
    names,
    scheduled,
    until_did,
    until_event,
)
from tests.support.meanwhile import MEANWHILE

FAMILY: Sequence[type] = [flows.StartsChild, BookTrip, Known]


def assert_start_was_pending(done: Done, event: str) -> None:
    """The event came between the request of the child's start and the start."""
    asked = done.events.index("StartChildWorkflowExecutionInitiated")
    started = done.events.index("ChildWorkflowExecutionStarted")
    assert asked < done.events.index(event) < started


PENDING = [
    ("BookTrip", "trip", [("BookTrip", "cancelled")]),
    ("Known", "child", []),
]
"""A child that is an action is in doubt; one that only unwinds itself is no business of its
parent's."""


@pytest.mark.parametrize(("child", "item", "doubts"), PENDING)
async def test_c3_cancel_while_a_child_start_is_pending(
    harness: Harness,
    child: str,
    item: str,
    doubts: list[tuple[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness.agrees = False  # History does not show that the start's awaiter was let go.
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.StartsChild.run, child, None)
        async with MEANWHILE.during(handle.id):
            await handle.cancel()
        done = await harness.finish(handle)
        await until_status(relative(harness, handle, "child"), WorkflowExecutionStatus.CANCELED)
    assert_start_was_pending(done, "WorkflowExecutionCancelRequested")
    assert done.status == "CANCELED"
    assert done.world == ["charge:parent", "refund:parent"]
    assert WORLD.of(f"{handle.id}-child") in ([], [f"charge:{item}", f"refund:{item}"])
    assert [(d.name, d.kind) for d in done.report.in_doubt] == doubts
    # One that is no action has no entry to be in doubt: it is logged.
    assert ("was being started" in caplog.text) == (not doubts)
    assert done.events.count("RequestCancelExternalWorkflowExecutionInitiated") == 1


@pytest.mark.parametrize(("child", "item", "doubts"), PENDING)
async def test_c3_failure_while_a_child_start_is_pending(
    harness: Harness, child: str, item: str, doubts: list[tuple[str, str]]
) -> None:
    """Nobody cancels what awaits the start, so the start ends, and the child unwinds first."""
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.StartsChild.run, child, None)
        async with MEANWHILE.during(handle.id):
            await handle.signal("break_it")
        done = await harness.finish(handle)
        child_world = WORLD.of(f"{handle.id}-child")
        child_status = await status_of(relative(harness, handle, "child"))
    assert_start_was_pending(done, "WorkflowExecutionSignaled")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "SignalFailed"
    assert done.world == ["charge:parent", "refund:parent"]
    assert child_status == WorkflowExecutionStatus.CANCELED
    assert child_world in ([], [f"charge:{item}", f"refund:{item}"])
    assert [(d.name, d.kind) for d in done.report.in_doubt] == doubts
    settled = done.events.index("ChildWorkflowExecutionCanceled")
    assert "ActivityTaskScheduled" in done.events[settled:]


async def test_c3_cancel_while_a_child_starts_that_nobody_runs(harness: Harness) -> None:
    harness.agrees = False  # History does not show that the start's awaiter was let go.
    async with harness.worker(FAMILY) as queue:
        handle = await harness.start(queue, flows.StartsChild.run, "BookTrip", flows.NOBODY)
        async with MEANWHILE.during(handle.id):
            await handle.cancel()
        done = await harness.finish(handle)
        await relative(harness, handle, "child").terminate()
    assert_start_was_pending(done, "WorkflowExecutionCancelRequested")
    assert done.status == "CANCELED"
    assert done.world == ["charge:parent", "refund:parent"]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("BookTrip", "cancelled")]


async def test_c4_cancel_of_an_action_that_nobody_took_and_of_a_child(harness: Harness) -> None:
    async with harness.worker([flows.QueuedAndChild, Known]) as queue:
        handle = await harness.start(queue, flows.QueuedAndChild.run)
        await until_did(relative(harness, handle, "child"), "charge:child")
        await handle.cancel()
        done = await harness.finish(handle)
    assert done.status == "CANCELED"
    assert "WorkflowTaskFailed" not in done.events
    assert done.world == ["charge:before", "refund:before"]
    assert WORLD.of(f"{handle.id}-child") == ["charge:child", "refund:child"]
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("charge", "cancelled")]


async def test_c8_a_hedge_of_local_calls_is_unrecorded_and_said_to_be(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    done = await harness.run(flows.HedgesLocally)
    assert done.status == "FAILED"
    assert sorted(done.world) == [f"at:{done.workflow_id}", "charge:fast"]
    assert done.report.status == "none"
    assert done.report.in_doubt == ()
    assert "WorkflowTaskFailed" not in done.events
    said = [r for r in caplog.messages if "action charge runs unrecorded" in r]
    assert len(said) >= 2
    assert "calls it as a local activity" in said[0]


async def test_c13_a_gate_before_an_undo_is_not_cancelled(harness: Harness) -> None:
    async def cancel_twice_then_approve(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCompleted", 2)
        await until_event(handle, "WorkflowTaskCompleted", 3)
        await handle.cancel()
        await until_event(handle, "TimerStarted")
        await handle.cancel()
        assert "refund" not in scheduled(await events_of(handle))
        await handle.signal("approve")

    done = await harness.run(flows.AsksFirst, meanwhile=cancel_twice_then_approve)
    assert done.status == "CANCELED"
    assert done.world[2:] == ["refund:by hand", "refund:automatic"]
    assert done.events.index("TimerCanceled") > done.events.index("WorkflowExecutionSignaled")


@pytest.mark.parametrize("cancel_type", ["try", "abandon"])
async def test_c14_a_child_action_that_completes_after_the_cancel(
    harness: Harness, cancel_type: str
) -> None:
    async with harness.worker([flows.TakesLateTrip, flows.LateTrip]) as queue:
        handle = await harness.start(queue, flows.TakesLateTrip.run, cancel_type)
        child = relative(harness, handle, "child")
        await until_did(child, "charge:trip")
        await handle.cancel()
        await until_event(child, "WorkflowExecutionCancelRequested")
        if cancel_type == "abandon":
            done = await harness.finish(handle)
            await child.signal("complete")
        else:
            assert "refund" not in scheduled(await events_of(handle))
            await child.signal("complete")
            done = await harness.finish(handle)
        await until_status(child, WorkflowExecutionStatus.COMPLETED)
    assert done.status == "CANCELED"
    assert WORLD.of(child.id) == ["charge:trip"]
    if cancel_type == "abandon":
        assert done.world == ["charge:parent", "refund:parent"]
        assert [(d.name, d.kind) for d in done.report.in_doubt] == [("LateTrip", "abandoned")]
    else:
        assert done.world == ["charge:parent", "refund:trip", "refund:parent"]
        assert done.report.in_doubt == ()


async def test_c16_a_cancel_undoes(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCompleted", 2)
        await handle.cancel()

    done = await harness.run(flows.WaitsForEver, meanwhile=cancel)
    assert done.status == "CANCELED"
    assert done.world == ["charge:a", "charge:b", "refund:b", "refund:a"]


async def test_c16_a_terminated_run_undoes_nothing(harness: Harness) -> None:
    async with harness.worker([flows.WaitsForEver]) as queue:
        handle = await harness.start(queue, flows.WaitsForEver.run)
        await until_event(handle, "ActivityTaskCompleted", 2)
        await handle.terminate()
        # A run that comes later, on the same worker, has unwound.
        later = await harness.start(queue, flows.WaitsForEver.run, id=f"late-{uuid.uuid4().hex}")
        await until_event(later, "ActivityTaskCompleted", 2)
        await later.cancel()
        assert (await harness.finish(later)).world[-1] == "refund:a"
    assert WORLD.of(handle.id) == ["charge:a", "charge:b"]
    assert names(await events_of(handle))[-1] == "WorkflowExecutionTerminated"
