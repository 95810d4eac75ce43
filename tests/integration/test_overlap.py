"""Endings, undos and handlers that overlap: the run closes once, after everything is undone."""

from __future__ import annotations

import uuid

import pytest
from temporalio.exceptions import ApplicationError, CancelledError

from tests.integration.overlap_flows import Overlap
from tests.support.acts import WORLD
from tests.support.harness import Done, Handle, Harness, until_did, until_event


async def gated(harness: Harness, how: str, *signals: str) -> Done:
    """Run it to the undo that waits at its gate, send signals, then open the gate."""
    run_id = f"overlap-{uuid.uuid4().hex[:8]}"
    gate = WORLD.gate(f"refund:{run_id}")
    async with harness.worker([Overlap]) as queue:
        handle = await harness.start(queue, Overlap.run, how, id=run_id)
        await until_did(handle, f"charge:{run_id}")
        done = len(effects(WORLD.of(run_id)))
        # The workflow has seen what its activities did.
        await until_event(handle, "ActivityTaskCompleted", done)
        await until_event(handle, "WorkflowTaskCompleted", done + 1)
        for signal in signals:
            if signal == "-":
                await until_did(handle, f"at:refund:{run_id}")
            else:
                name, *args = signal.split()
                await handle.signal(name, args=args)
        await until_did(handle, f"at:refund:{run_id}")
        await until_event(handle, "WorkflowExecutionSignaled", len(signals) - signals.count("-"))
        gate.set()
        return await harness.finish(harness.client.get_workflow_handle(run_id))


def effects(world: list[str]) -> list[str]:
    return [e for e in world if not e.startswith("at:")]


async def test_a_handler_cannot_continue_a_run_that_unwinds(harness: Harness) -> None:
    done = await gated(harness, "fails_and_renews", "-", "renew")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "MainFailed"
    assert effects(done.world)[-1] == "refund:first"


async def test_a_run_cannot_continue_that_a_handler_unwinds(harness: Harness) -> None:
    done = await gated(harness, "renews_while_handler_fails", "break_it", "-", "proceed")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "SignalFailed"
    assert effects(done.world)[-1] == "refund:first"


async def test_a_failing_run_waits_for_a_compensate_that_is_at_work(harness: Harness) -> None:
    done = await gated(harness, "ends_during_compensate", "undo", "-", "proceed")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "MainFailed"
    assert done.verdicts == [("charge", "undone")]


async def test_a_compensate_that_waits_its_turn_is_not_lost(harness: Harness) -> None:
    """One is at work, the run fails, and another one is asked for: the run's unwind answers."""
    signals = ["undo_one charge", "-", "undo_one reserve", "proceed"]
    done = await gated(harness, "ends_while_compensates_queue", *signals)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "MainFailed"
    assert "release:queued" in done.world
    assert done.report.status == "completed"


async def test_a_returning_run_waits_for_a_compensate_that_is_at_work(harness: Harness) -> None:
    done = await gated(harness, "returns_during_compensate", "undo", "-", "proceed")
    assert done.result == "returned"
    assert done.verdicts == [("charge", "undone")]


async def test_r8_an_undo_called_again_does_not_close_another(harness: Harness) -> None:
    done = await harness.run(Overlap, "refund_again")
    assert done.world[2:] == ["refund:a", "refund:a", "refund:b"]


async def test_r8_the_undo_of_what_is_sealed_does_not_close_another(harness: Harness) -> None:
    done = await harness.run(Overlap, "release_what_is_sealed")
    assert done.world[-2:] == ["release:a", "release:b"]


async def test_compensate_settles_the_committer_first(harness: Harness) -> None:
    async def compensate_then_ship(handle: Handle) -> None:
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("proceed")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(
        Overlap, "compensate_beside_its_committer", meanwhile=compensate_then_ship
    )
    assert effects(done.world) == ["reserve:a", "ship:a"]
    assert done.report.status == "none"


@pytest.mark.parametrize("broken", [False, True])
async def test_a_timeout_around_compensate_leaves_no_stray_cancel(
    harness: Harness, broken: bool
) -> None:
    run_id = f"overlap-{uuid.uuid4().hex[:8]}"
    WORLD.gate(f"refund:{run_id}")
    async with harness.worker([Overlap]) as queue:
        handle = await harness.start(queue, Overlap.run, "timeout_around_compensate", id=run_id)
        await until_did(handle, f"at:refund:{run_id}")
        await until_event(handle, "TimerFired")
        if broken:
            WORLD.broken.add(run_id)
        WORLD.gate(f"refund:{run_id}").set()
        done = await harness.finish(handle)
    assert done.result == ["timeout"]
    assert done.world[-1] == "note:not cancelled"
    assert done.report.status == ("failed" if broken else "completed")


async def test_what_an_unwind_withdraws_is_not_given_to_its_awaiter(harness: Harness) -> None:
    async def undo_it(handle: Handle) -> None:
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("undo")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(Overlap, "awaits_what_is_undone", meanwhile=undo_it)
    assert effects(done.world) == ["charge:m", "refund:m"]
    assert isinstance(done.error, CancelledError)


async def test_a_committer_that_completes_during_a_failing_undo_seals(harness: Harness) -> None:
    WORLD.broken.add("broken")
    WORLD.gate("release:broken")
    try:
        async with harness.worker([Overlap]) as queue:
            handle = await harness.start(queue, Overlap.run, "commits_during_a_failing_undo")
            await until_did(handle, "at:release:broken")
            await until_did(handle, "ship:broken")
            await until_event(handle, "WorkflowTaskCompleted", 3)
            WORLD.gates.pop("release:broken").set()
            done = await harness.finish(handle)
    finally:
        WORLD.broken.discard("broken")
    assert done.result == "committed"
    assert done.report.status == "none"


async def test_two_awaiters_of_one_call_both_see_it_settle(harness: Harness) -> None:
    async def fail_then_let_go(handle: Handle) -> None:
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("proceed")
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(Overlap, "two_awaiters", meanwhile=fail_then_let_go)
    assert effects(done.world) == ["charge:b", "note:after the group"]


async def test_nothing_starts_between_the_unwind_and_the_close(harness: Harness) -> None:
    done = await harness.run(Overlap, "acts_after_the_unwind")
    assert done.world == ["charge:a", "refund:a"]
