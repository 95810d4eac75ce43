"""What a reset leaves dangling is recovered; one that builds on what is undone is refused."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError

from agboss_temporal import CompensationReport, recovery
from agboss_temporal.recovery import RecoveryRefused
from tests.integration.recovery_flows import ACTS, SHOP, Order, Steps
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Handle, Harness, events_of, until_did, until_observed
from tests.support.recoveries import keys, recover, replayed_too, undone

EVERYTHING: list[Callable[..., Any]] = [*ACTIVITIES, *ACTS]


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    WORLD.gates.clear()
    WORLD.broken.clear()


async def tasks(handle: Handle) -> list[int]:
    """The events to which a run can be reset."""
    wanted = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    return [e.event_id for e in await events_of(handle) if e.event_type == wanted]


async def reset(harness: Harness, handle: Handle, event_id: int, run_id: str | None = None) -> str:
    """Reset a run; return the id of the new one."""
    answer = await harness.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=harness.client.namespace,
            workflow_execution=WorkflowExecution(
                workflow_id=handle.id, run_id=run_id or handle.result_run_id or ""
            ),
            reason="test",
            workflow_task_finish_event_id=event_id,
            request_id=str(uuid.uuid4()),
        )
    )
    return answer.run_id


def run_of(harness: Harness, handle: Handle, run_id: str) -> Handle:
    """Return a run, to be replayed at the end of the test."""
    found: Handle = harness.client.get_workflow_handle(handle.id, run_id=run_id)
    harness._runs.append((found, harness._runs[-1][1]))
    return found


async def opened(handle: Handle, place: str) -> None:
    """Let all that hangs at a place go on."""
    WORLD.gates.pop(f"{handle.id}:{place}").set()


PLACES = {"after stock": 1, "after money": 2, "before home": 3}
"""Where the order hangs when it is reset, and how many tasks it has had."""


@pytest.mark.parametrize(
    ("place", "task"), [(place, n) for place, count in PLACES.items() for n in range(count)]
)
async def test_h6_what_a_reset_leaves_dangling_is_undone(
    harness: Harness, place: str, task: int
) -> None:
    async with harness.worker([Order], EVERYTHING) as queue:
        workflow_id = f"reset-{uuid.uuid4().hex[:8]}"
        WORLD.gate(f"{workflow_id}:{place}")
        handle = await harness.start(queue, Order.run, id=workflow_id)
        await until_did(handle, f"at:{place}")
        took = WORLD.of(workflow_id)
        new = await reset(harness, handle, (await tasks(handle))[task])
        await opened(handle, place)
        assert await run_of(harness, handle, new).result() == "home"
        # What was started before the reset lives on in the new run, the rest was done again.
        held = SHOP.of(workflow_id)
        dangling = [w for w in ("stock", "money")[task:] if f"take:{w}" in took]
        assert held == sorted(f"{workflow_id}:{w}" for w in ("stock", "money", *dangling))
        options: dict[str, Any] = {"run_id": handle.result_run_id}
        plan = await recovery.plan(harness.client, workflow_id, **options)
        assert len(plan.undos) == len(dangling)
        assert plan.newer_run_id == new
        if dangling:
            with pytest.raises(RecoveryRefused, match="on_newer_run"):
                await recovery.recover(harness.client, workflow_id, **options)
            found = await recover(harness, handle, on_newer_run=True, **options)
            assert found.status == "completed"
        assert SHOP.of(workflow_id) == [f"{workflow_id}:money", f"{workflow_id}:stock"]
        again = await recovery.plan(harness.client, workflow_id, **options)
        assert again.undos == ()


async def stepped(harness: Harness, queue: str, *items: str) -> Handle:
    handle = await harness.start(queue, Steps.run, list(items))
    await until_observed(handle, len(items))
    return handle


async def test_h6_a_run_that_was_reset_twice_is_recovered_once(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await stepped(harness, queue, "a", "b", "c")
        events = await tasks(handle)
        first = await reset(harness, handle, events[2])
        await until_observed(run_of(harness, handle, first), 3)
        second = await reset(harness, handle, events[1])
        newest = run_of(harness, handle, second)
        await until_observed(newest, 3)
        await newest.terminate()
        open_keys = {}
        for run_id in (handle.result_run_id, first, second):
            plan = await recovery.plan(harness.client, handle.id, run_id)
            open_keys[run_id] = [u.key for u in plan.undos]
        assert [len(keys) for keys in open_keys.values()] == [2, 2, 3]
        assert len({key for keys in open_keys.values() for key in keys}) == 6
        for run_id in (first, handle.result_run_id, second):
            found = await recovery.recover(harness.client, handle.id, run_id, on_newer_run=True)
            replayed_too(harness, handle, found.recovery_ids)
            assert found.status == "completed"
        # a, then b and c of the old run, c of the first new one, b and c of the second.
        assert sorted(undone(handle.id)) == ["refund:a", *["refund:b"] * 2, *["refund:c"] * 3]


async def test_h6_a_run_that_has_undone_nothing_may_be_reset_anywhere(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await stepped(harness, queue, "a", "b")
        for event_id in await tasks(handle):
            await recovery.check_reset(harness.client, handle.id, event_id)
        with pytest.raises(RecoveryRefused, match="not the end of a workflow task") as caught:
            await recovery.check_reset(harness.client, handle.id, 5)
        assert caught.value.why == "no-reset-point"
        with pytest.raises(RecoveryRefused) as caught:
            await recovery.check_reset(harness.client, "nobody", 5)
        assert caught.value.why == "not-found"
        await handle.terminate()


async def test_h6_a_reset_that_would_build_on_a_recovery_is_refused(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await stepped(harness, queue, "a", "b")
        await handle.terminate()
        await recover(harness, handle)
        points = await tasks(handle)
        await recovery.check_reset(harness.client, handle.id, points[0])
        for event_id in points[1:]:
            with pytest.raises(RecoveryRefused) as caught:
                await recovery.check_reset(harness.client, handle.id, event_id)
            assert caught.value.why == "unsafe-reset"
            assert f"the last safe one is {points[0]}" in str(caught.value)
            assert "charge" in str(caught.value)


async def test_h6_a_run_made_from_a_recovered_one_does_not_undo_it_again(
    harness: Harness,
) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await stepped(harness, queue, "a", "b")
        await handle.terminate()
        await recover(harness, handle)
        new = run_of(harness, handle, await reset(harness, handle, (await tasks(handle))[1]))
        await until_observed(new, 2)
        await new.terminate()
        plan = await recovery.plan(harness.client, handle.id)
        assert len(plan.undos) == 1  # the second b; a is undone, though the new run built on it
        await recover(harness, handle)
        assert sorted(undone(handle.id)) == ["refund:a", "refund:b", "refund:b"]


@pytest.mark.parametrize("undone_before", [0, 1])
async def test_h6_a_run_that_is_reset_in_the_middle_of_its_unwind_ends_it(
    harness: Harness, undone_before: int
) -> None:
    """The new run goes on where the old one was, with the same keys; nothing is left of the old."""
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await stepped(harness, queue, "a", "b", "c")
        gate = ("refund:c", "refund:b")[undone_before]
        WORLD.gate(gate)
        await handle.cancel()
        await until_did(handle, f"at:{gate}")
        new = run_of(harness, handle, await reset(harness, handle, (await tasks(handle))[-1]))
        WORLD.gate(gate).set()
        with pytest.raises(WorkflowFailureError):
            await new.result()
        report = await new.query("agboss.compensation", result_type=CompensationReport)
        assert (report.status, report.counts) == ("completed", {"undone": 3})
        plan = await recovery.plan(harness.client, handle.id, handle.result_run_id)
        assert (plan.undos, plan.under_way) == ((), ())
        for item in "abc":
            assert len(set(keys(handle.id, f"refund:{item}"))) == 1
        effects = [what for what in WORLD.of(handle.id) if what.startswith("refund:")]
        assert list(dict.fromkeys(effects)) == ["refund:c", "refund:b", "refund:a"]
