"""Cancels that arrive at the worst moment."""

from __future__ import annotations

import asyncio
import uuid
from itertools import product

import pytest
from temporalio.worker._workflow_instance import _WorkflowLogicFlag

from tests.integration import race_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    events_of,
    names,
    scheduled,
    until,
    until_did,
    until_event,
    until_scheduled,
)

ROLES = ["action", "committer", "explicit undo"]
CANCEL_TYPES = ["try", "wait", "abandon"]
ORDERS = ["complete first", "cancel first"]


GATES = {"action": "charge", "committer": "ship", "explicit undo": "refund"}

EXPECTED = {
    "action": ["charge:x", "refund:x"],
    "committer": ["reserve:x", "ship:x"],
    "explicit undo": ["charge:x", "refund:x"],
}


@pytest.mark.parametrize("flag", [None, 2], ids=["legacy-jobs", "single-batch"])
async def test_c1_cancel_and_completion_in_one_workflow_task(
    harness: Harness, flag: int | None
) -> None:
    """For each role, cancellation type and order: nothing is lost, nothing is done twice."""
    flags = [] if flag is None else [_WorkflowLogicFlag(flag)]
    combinations = list(product(ROLES, CANCEL_TYPES, ORDERS))
    async with harness.worker((), ACTIVITIES) as acts:
        async with harness.worker([flows.Race], (), flags=flags) as queue:
            runs = [
                (combo, await _start_race(harness, queue, acts, combo)) for combo in combinations
            ]
            await asyncio.gather(*(until_did(h, f"at:{_gate(c, h)}") for c, h in runs))
        await asyncio.gather(*(_complete_and_cancel(c, h) for c, h in runs))
        async with harness.worker([flows.Race], (), queue=queue, flags=flags):
            for combo, handle in runs:
                done = await harness.finish(handle)
                effects = [e.replace(handle.id, "x") for e in _effects(done)]
                assert (combo, done.status) == (combo, "CANCELED")
                assert (combo, effects) == (combo, EXPECTED[combo[0]])
                _assert_one_task_saw_both(combo[2], done)


async def _start_race(
    harness: Harness, queue: str, acts: str, combo: tuple[str, str, str]
) -> Handle:
    run_id = f"race-{uuid.uuid4().hex[:10]}"
    if combo[0] == "explicit undo":
        WORLD.gate(f"refund:{run_id}")
    return await harness.start(queue, flows.Race.run, combo[0], combo[1], acts, id=run_id)


def _gate(combo: tuple[str, str, str], handle: Handle) -> str:
    return f"{GATES[combo[0]]}:{handle.id}"


def _effects(done: Done) -> list[str]:
    return [effect for effect in done.world if not effect.startswith("at:")]


async def _complete_and_cancel(combo: tuple[str, str, str], handle: Handle) -> None:
    before = names(await events_of(handle)).count("ActivityTaskCompleted")
    if combo[2] == "cancel first":
        await handle.cancel()
    WORLD.gate(_gate(combo, handle)).set()
    await until_event(handle, "ActivityTaskCompleted", before + 1)
    if combo[2] == "complete first":
        await handle.cancel()


def _assert_one_task_saw_both(order: str, done: Done) -> None:
    events = done.events
    cancelled = events.index("WorkflowExecutionCancelRequested")
    completions = [n for n, event in enumerate(events) if event == "ActivityTaskCompleted"]
    completed = min(completions, key=lambda n: abs(n - cancelled))
    first, second = sorted((cancelled, completed))
    assert (order == "cancel first") == (cancelled < completed)
    assert "WorkflowTaskStarted" not in events[first:second]


def _gated_id() -> str:
    """Make the id of a run whose undo of the item named like it waits at a gate."""
    run_id = f"gated-{uuid.uuid4().hex[:10]}"
    WORLD.gate(f"refund:{run_id}")
    return run_id


@pytest.mark.parametrize(
    "shape",
    [
        "direct",
        "gathered",
        "grouped",
        "shielded",
        "in_a_task",
        "waited",
        "wait_for",
        "never_awaited",
    ],
)
async def test_u11_c7_a_cancel_waits_for_the_action_that_runs(harness: Harness, shape: str) -> None:
    async def cancel(handle: Handle) -> None:
        await until_did(handle, f"at:{handle.id}")
        await handle.cancel()
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(flows.InFlight, shape, meanwhile=cancel)
    assert done.status == "CANCELED"
    assert [e for e in _effects(done) if "beside" not in e] == [
        "charge:before",
        "charge:slow",
        "refund:slow",
        "refund:before",
    ]
    beside = done.world.count("charge:beside")
    assert done.world.count("refund:beside") == beside
    assert done.events.count("ActivityTaskCancelRequested") == 1 + beside
    settled = done.events.index("ActivityTaskCancelRequested") + 1
    first_undo = scheduled(done.history.events).index("refund")
    undo_event = [n for n, e in enumerate(done.events) if e == "ActivityTaskScheduled"][first_undo]
    assert "ActivityTaskCompleted" in done.events[settled:undo_event]


async def test_an_asyncio_timeout_returns_when_the_action_settles(harness: Harness) -> None:
    async def let_go(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(flows.TimesOut, meanwhile=let_go)
    assert done.status == "FAILED"
    assert done.world[1:] == ["charge:slow", "note:timed out", "refund:slow"]
    assert done.report.trigger == "cap-breach"


@pytest.mark.parametrize("how", ["goes on", "gathered"])
async def test_a_cancel_on_every_turn_is_obeyed_at_once_and_asked_once(
    harness: Harness, how: str
) -> None:
    async def cancel(handle: Handle) -> None:
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("cancel_scope")
        if how == "goes on":
            await until_did(handle, "note:let go within ten turns: True")
        else:
            await until_scheduled(handle, "explode")
        WORLD.gate(handle.id).set()

    done = await harness.run(flows.EveryTurn, how, meanwhile=cancel)
    assert done.status == "FAILED"
    assert done.events.count("ActivityTaskCancelRequested") == 1
    assert "WorkflowTaskFailed" not in done.events
    order = [e for e in done.world if not e.startswith(("at:", "note:"))]
    assert order == ["charge:before", "charge:slow", "refund:slow", "refund:before"]


async def test_a_cancel_scope_of_anyio_is_obeyed_at_once(harness: Harness) -> None:
    async def let_go(handle: Handle) -> None:
        await until_did(handle, "note:scope cancelled: True")
        WORLD.gate(handle.id).set()

    done = await harness.run(flows.Anyio, meanwhile=let_go)
    assert "WorkflowTaskFailed" not in done.events
    assert done.events.count("ActivityTaskCancelRequested") == 1
    assert done.world[-2:] == ["charge:slow", "refund:slow"]


async def test_c18_a_second_cancel_changes_nothing(harness: Harness) -> None:
    async def cancel_twice(handle: Handle) -> None:
        gate = WORLD.gate(f"refund:{handle.id}")
        await until_event(handle, "TimerStarted")
        await handle.cancel()
        await until_did(handle, f"at:refund:{handle.id}")
        await handle.cancel()
        await handle.signal("noise")
        await until_did(handle, "note:signalled")
        gate.set()

    done = await harness.run(flows.SlowUndo, "cancel", meanwhile=cancel_twice)
    assert done.status == "CANCELED"
    assert done.world[-2:] == [f"refund:{done.world[1].split(':')[1]}", "refund:first"]
    assert done.world.count("refund:first") == 1


async def test_a_cancel_during_the_unwind_of_a_failure_loses_nothing(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        gate = WORLD.gate(f"refund:{handle.id}")
        await until_did(handle, f"at:refund:{handle.id}")
        await handle.cancel()
        await until_event(handle, "WorkflowExecutionCancelRequested")
        gate.set()

    async with harness.worker([flows.SlowUndo]) as queue:
        handle_id = _gated_id()
        handle = await harness.start(queue, flows.SlowUndo.run, "fail", id=handle_id)
        await cancel(handle)
        done = await harness.finish(handle)
    assert done.status == "FAILED"
    assert done.world[-1] == "refund:first"
    assert done.report.status == "completed"


async def test_c10_c6_the_undos_of_a_cancelled_run_are_not_cancelled(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCompleted", 5)
        await handle.cancel()

    done = await harness.run(flows.ManyUndos, meanwhile=cancel)
    assert done.status == "CANCELED"
    assert scheduled(done.history.events).count("refund") == 5
    assert "ActivityTaskCancelRequested" not in done.events
    assert done.world[5:] == [f"refund:{n}" for n in reversed(range(5))]


async def test_c11_a_cancel_before_the_call_is_sent_leaves_nothing_to_undo(
    harness: Harness,
) -> None:
    done = await harness.run(flows.CancelFirst)
    assert done.world == ["charge:before", "refund:before"]
    assert done.report.in_doubt == ()
    assert scheduled(done.history.events) == ["charge", "refund"]


async def test_named_calls_are_refused_while_the_run_unwinds(harness: Harness) -> None:
    async with harness.worker([flows.Refused]) as queue:
        handle_id = _gated_id()
        gate = WORLD.gate(f"refund:{handle_id}")
        handle = await harness.start(queue, flows.Refused.run, id=handle_id)
        await until_did(handle, f"at:refund:{handle_id}")
        await handle.signal("act")
        await until_did(handle, "note:ApplicationError:UnwindInProgress")
        gate.set()
        done = await harness.finish(handle)
    assert "charge:too late" not in done.world
    assert done.world[-1] == f"refund:{handle_id}"


async def test_a_cancel_during_compensate_comes_after_it(harness: Harness) -> None:
    async with harness.worker([flows.CompensateCancelled]) as queue:
        handle_id = _gated_id()
        gate = WORLD.gate(f"refund:{handle_id}")
        handle = await harness.start(queue, flows.CompensateCancelled.run, id=handle_id)
        await until_did(handle, f"at:refund:{handle_id}")
        await handle.cancel()

        async def seen() -> bool:
            return "WorkflowExecutionCancelRequested" in names(await events_of(handle))

        await until(seen)
        gate.set()
        done = await harness.finish(handle)
    assert done.status == "CANCELED"
    assert _effects(done) == [
        "charge:first",
        f"charge:{handle_id}",
        f"refund:{handle_id}",
        "refund:first",
    ]
