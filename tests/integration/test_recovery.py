"""Closed runs whose code had no chance to unwind are recovered from their histories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError

from agboss_temporal import CompensationPolicy, recovery
from agboss_temporal.recovery import RecoveryRefused
from tests.integration.recovery_flows import ACTS, SHOP, Order, Steps
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Handle, Harness, events_of, until, until_did, until_observed
from tests.support.recoveries import keys, outside, recover, undone, verdicts

EVERYTHING: list[Callable[..., Any]] = [*ACTIVITIES, *ACTS]

ON_THE_WAY = [
    "before stock",
    "after stock",
    "before money",
    "after money",
    "before home",
    "before undo money",
    "after undo money",
    "before undo stock",
    "after undo stock",
]


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    WORLD.gates.clear()
    WORLD.broken.clear()


async def closed(handle: Handle) -> None:
    with pytest.raises(WorkflowFailureError):
        await handle.result()


async def hang(harness: Harness, queue: str, place: str, **options: Any) -> Handle:
    """Start an order whose activity, or undo, hangs at a place."""
    workflow_id = f"order-{place.replace(' ', '-')}-{harness.cache}-{len(WORLD.timeline)}"
    WORLD.gate(f"{workflow_id}:{place}")
    where = "nowhere" if "undo" in place else "home"
    handle = await harness.start(queue, Order.run, where, id=workflow_id, **options)
    await until_did(handle, f"at:{place}")
    return handle


async def release(handle: Handle, place: str) -> None:
    """Let what hangs come to its end; before its effect that is a crash."""
    name = f"{handle.id}:{place}"
    if place.startswith("before"):
        WORLD.broken.add(name)
    WORLD.gate(name).set()
    if place.startswith("before"):
        await until_did(handle, f"crashed:{place}")
    del WORLD.gates[name]


@pytest.mark.parametrize("place", ON_THE_WAY)
async def test_r1_a_run_terminated_anywhere_is_undone(harness: Harness, place: str) -> None:
    async with harness.worker([Order], EVERYTHING) as queue:
        handle = await hang(harness, queue, place)
        await handle.terminate()
        await release(handle, place)
        found = await recover(harness, handle)
        assert found.status == "completed"
        assert SHOP.of(handle.id) == []
        before = outside(handle.id)
        again = await recover(harness, handle)
        assert again.undos == found.undos
        assert outside(handle.id) == before
        assert max(SHOP.served.values()) <= 2  # an undo that was interrupted is repeated


@pytest.mark.parametrize("timeout", ["execution_timeout", "run_timeout"])
@pytest.mark.parametrize("place", ["after stock", "after money", "before undo stock"])
async def test_r2_a_run_timed_out_anywhere_is_undone(
    harness: Harness, timeout: str, place: str
) -> None:
    async with harness.worker([Order], EVERYTHING) as queue:
        handle = await hang(harness, queue, place, **{timeout: timedelta(seconds=1)})
        await closed(handle)
        await release(handle, place)
        found = await recover(harness, handle)
        assert found.status == "completed"
        assert SHOP.of(handle.id) == []


async def test_r1_the_plan_is_newest_first_and_changes_nothing(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await harness.start(queue, Steps.run, ["a", "b", "c"])
        await until_observed(handle, 3)
        await handle.terminate()
        plan = await recovery.plan(harness.client, handle.id)
        assert [u.action for u in plan.undos] == ["charge"] * 3
        assert {(u.undo, u.workflow_id, u.outcome) for u in plan.undos} == {
            ("refund", handle.id, "completed")
        }
        assert {u.task_queue for u in plan.undos} == {queue}
        assert [u.started_at for u in plan.undos] == [None] * 3
        assert plan.run_id == handle.result_run_id
        assert (plan.newer_run_id, plan.notes, plan.under_way) == (None, (), ())
        assert await recovery.plan(harness.client, handle.id) == plan
        assert undone(handle.id) == []
        found = await recover(harness, handle)
        assert undone(handle.id) == ["refund:c", "refund:b", "refund:a"]
        assert [u.key for u in found.undos] == [u.key for u in plan.undos]
        assert (await recovery.plan(harness.client, handle.id)).is_clean


async def test_r1_an_undo_has_the_key_that_the_run_itself_would_have_given_it(
    harness: Harness,
) -> None:
    async with harness.worker([Order], EVERYTHING) as queue:
        handle = await hang(harness, queue, "after undo money")
        await handle.terminate()
        await release(handle, "after undo money")
        await recover(harness, handle)
        found = keys(handle.id, "put_back:money:completed")
        assert len(found) == 2
        assert len(set(found)) == 1


async def test_r1_what_an_undo_was_interrupted_in_is_said(harness: Harness) -> None:
    async with harness.worker([Order], EVERYTHING) as queue:
        handle = await hang(harness, queue, "after undo money")
        await handle.terminate()
        await release(handle, "after undo money")
        [money, stock] = (await recovery.plan(harness.client, handle.id)).undos
        assert money.started_at is not None
        assert stock.started_at is None


async def test_a_committer_that_was_at_work_is_told_of(harness: Harness) -> None:
    async with harness.worker([Order], EVERYTHING) as queue:
        handle = await hang(harness, queue, "after home")
        await handle.terminate()
        await release(handle, "after home")
        plan = await recovery.plan(harness.client, handle.id)
        assert len(plan.undos) == 2
        [note] = plan.notes
        assert note.startswith("committer send ")
        found = await recover(harness, handle)
        assert (found.status, found.is_clean) == ("completed", False)


async def test_two_recoveries_at_once_are_one(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await harness.start(queue, Steps.run, ["a", "b", "c"])
        await until_observed(handle, 3)
        await handle.terminate()
        one, other = await asyncio.gather(recover(harness, handle), recover(harness, handle))
        assert one == other
        assert len(one.recovery_ids) == 1
        assert undone(handle.id) == ["refund:c", "refund:b", "refund:a"]


async def test_a_recovery_need_not_be_waited_for(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await harness.start(queue, Steps.run, ["a"])
        await until_observed(handle)
        await handle.terminate()
        WORLD.gate("refund:a")
        found = await recover(harness, handle, wait=False)
        assert (found.status, verdicts(found)) == ("running", [("charge", None)])
        plan = await recovery.plan(harness.client, handle.id)
        assert (plan.undos, plan.under_way) == ((), found.recovery_ids)
        joined = asyncio.create_task(recover(harness, handle))
        await until_undone(handle, "at:refund:a")
        WORLD.gate("refund:a").set()
        assert (await joined).status == "completed"
        assert undone(handle.id).count("refund:a") == 1


async def until_undone(handle: Handle, effect: str) -> None:
    """Wait until a recovery has done something."""

    async def there() -> bool:
        return effect in undone(handle.id)

    await until(there)


async def refusal(harness: Harness, handle: Handle, **options: Any) -> RecoveryRefused:
    with pytest.raises(RecoveryRefused) as caught:
        await recovery.recover(harness.client, handle.id, **options)
    assert handle.id in str(caught.value)
    return caught.value


async def test_what_is_not_to_be_recovered_is_refused(harness: Harness) -> None:
    async with harness.worker([Order, Steps], EVERYTHING) as queue:
        handle = await harness.start(queue, Steps.run, [])
        refused = await refusal(harness, handle)
        assert refused.why == "open"
        assert "cancel it" in str(refused)
        await handle.terminate()
        assert (await refusal(harness, handle)).why == "nothing-open"
        done = await harness.start(queue, Order.run)
        await done.result()
        assert (await refusal(harness, done)).why == "finished"
        with pytest.raises(RecoveryRefused, match="there is no nobody") as caught:
            await recovery.plan(harness.client, "nobody")
        assert caught.value.why == "not-found"


async def test_a_recovery_is_not_recovered_itself(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await harness.start(queue, Steps.run, ["a"])
        await until_observed(handle)
        await handle.terminate()
        found = await recover(harness, handle)
        with pytest.raises(RecoveryRefused) as caught:
            await recovery.plan(harness.client, found.recovery_ids[0])
        assert caught.value.why == "recovery"


async def test_a_newer_run_takes_a_word_of_its_own(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await harness.start(queue, Steps.run, ["a"])
        await until_observed(handle)
        await handle.terminate()
        newer = await harness.start(queue, Steps.run, [], id=handle.id)
        options: dict[str, Any] = {"run_id": handle.result_run_id}
        plan = await recovery.plan(harness.client, handle.id, **options)
        assert plan.newer_run_id == newer.result_run_id
        refused = await refusal(harness, handle, **options)
        assert refused.why == "newer-run"
        assert (newer.result_run_id or "") in str(refused)
        assert undone(handle.id) == []
        await recover(harness, handle, on_newer_run=True, **options)
        assert undone(handle.id) == ["refund:a"]
        await newer.terminate()


async def test_r3_a_recovery_runs_where_it_is_told_with_bounds_of_its_own(
    harness: Harness,
) -> None:
    options = {"start_to_close_timeout": timedelta(seconds=7)}
    async with (
        harness.worker([Steps], EVERYTHING) as queue,
        harness.worker([Steps], EVERYTHING) as other,
    ):
        handle = await harness.start(queue, Steps.run, ["a"], run_timeout=timedelta(seconds=1))
        await closed(handle)
        policy = CompensationPolicy(undo_options=options, total_timeout=timedelta(minutes=5))
        found = await recover(harness, handle, task_queue=other, policy=policy)
        run = harness.client.get_workflow_handle(found.recovery_ids[0])
        description = await run.describe()
        assert description.status is WorkflowExecutionStatus.COMPLETED
        assert description.task_queue == other
        events = await events_of(run)
        [undo] = [e for e in events if e.HasField("activity_task_scheduled_event_attributes")]
        begun = undo.activity_task_scheduled_event_attributes
        assert begun.task_queue.name == queue
        assert begun.start_to_close_timeout.seconds == 7
        assert begun.schedule_to_close_timeout.seconds <= 300
