"""Recoveries that fail, are stopped or are large are repeated, and nothing is undone twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensationPolicy, CompensationReport, recovery
from agboss_temporal.recovery import RecoveryRefused
from tests.integration.recovery_flows import Steps
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Handle, Harness, until, until_observed
from tests.support.recoveries import keys, recover, replayed_too, undone, verdicts

EVERYTHING: list[Callable[..., Any]] = list(ACTIVITIES)


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    WORLD.gates.clear()
    WORLD.broken.clear()


async def terminated(harness: Harness, queue: str, *items: str) -> Handle:
    handle = await harness.start(queue, Steps.run, list(items))
    await until_observed(handle, len(items))
    await handle.terminate()
    return handle


async def until_undone(handle: Handle, effect: str) -> None:
    async def there() -> bool:
        return effect in undone(handle.id)

    await until(there)


def refunds(handle: Handle) -> list[str]:
    return [effect for effect in undone(handle.id) if effect.startswith("refund:")]


async def test_a_failed_recovery_is_started_again_with_what_it_left(harness: Harness) -> None:
    WORLD.broken.add("b")
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b", "c")
        first = await recover(harness, handle)
        assert first.status == "partial"
        assert [(u.verdict, u.reason) for u in first.undos] == [
            ("undone", None),
            ("failed", "RefundBroken"),
            ("undone", None),
        ]
        [plan] = (await recovery.plan(harness.client, handle.id)).undos
        assert plan.key == first.undos[1].key
        assert plan.started_at == first.undos[1].started_at
        WORLD.broken.clear()
        second = await recover(harness, handle)
        assert (second.status, len(second.recovery_ids)) == ("completed", 2)
        assert refunds(handle) == ["refund:c", "refund:a", "refund:b"]
        third = await recover(harness, handle)
        assert third == second


async def test_what_a_recovery_left_behind_fails_it_and_stands_in_its_error(
    harness: Harness,
) -> None:
    WORLD.broken.add("a")
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a")
        found = await recover(harness, handle)
        run = harness.client.get_workflow_handle(found.recovery_ids[0])
        with pytest.raises(WorkflowFailureError) as caught:
            await run.result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "CompensationFailedError"
        report = CompensationReport.from_error(caught.value)
        assert report is not None
        assert [(e.action, e.verdict) for e in report.entries] == [("charge", "failed")]
        assert report.trigger == "operator-request"
        assert report.cause == "TerminatedError"


async def test_a_recovery_that_is_terminated_goes_on_where_it_was(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b", "c")
        WORLD.gate("refund:b")
        running = asyncio.create_task(recover(harness, handle))
        await until_undone(handle, "at:refund:b")
        [under_way] = (await recovery.plan(harness.client, handle.id)).under_way
        await harness.client.get_workflow_handle(under_way).terminate()
        stopped = await running
        assert [(u.verdict, u.reason) for u in stopped.undos] == [
            ("undone", None),
            ("failed", "interrupted"),
            ("not_run", "the recovery was stopped before"),
        ]
        WORLD.gate("refund:b").set()
        await until_undone(handle, "refund:b")
        del WORLD.gates["refund:b"]
        plan = (await recovery.plan(harness.client, handle.id)).undos
        assert [u.started_at is not None for u in plan] == [True, False]
        found = await recover(harness, handle)
        assert found.status == "completed"
        assert refunds(handle) == ["refund:c", "refund:b", "refund:b", "refund:a"]
        assert len(set(keys(handle.id, "refund:b"))) == 1  # so outside it is once


async def test_a_recovery_survives_its_worker(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b")
    found = asyncio.create_task(recover(harness, handle))
    async with harness.worker([Steps], EVERYTHING, queue=queue):
        await until_undone(handle, "refund:b")
    async with harness.worker([Steps], EVERYTHING, queue=queue):
        assert (await found).status == "completed"
    assert refunds(handle) == ["refund:b", "refund:a"]


async def test_a_cancel_does_not_interrupt_a_recovery(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b")
        WORLD.gate("refund:b")
        running = asyncio.create_task(recover(harness, handle))
        await until_undone(handle, "at:refund:b")
        [under_way] = (await recovery.plan(harness.client, handle.id)).under_way
        await harness.client.get_workflow_handle(under_way).cancel()
        WORLD.gate("refund:b").set()
        assert (await running).status == "completed"


async def test_a_plan_that_is_out_of_date_is_never_started(harness: Harness) -> None:
    """Who comes late, with a plan of before, is refused by the server and plans again."""
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b")
        planned, late = asyncio.Event(), asyncio.Event()
        start = harness.client.start_workflow

        async def start_late(*args: Any, **options: Any) -> Any:
            planned.set()
            await late.wait()
            return await start(*args, **options)

        WORLD.broken.add("a")
        with mock.patch.object(harness.client, "start_workflow", start_late):
            slow = asyncio.create_task(recover(harness, handle))
            await planned.wait()
            quick = await recover(harness.with_(), handle)
            assert quick.status == "partial"
            WORLD.broken.clear()
            late.set()
            assert (await slow).status == "completed"
        assert refunds(handle) == ["refund:b", "refund:a"]


async def test_a_recovery_stops_where_its_policy_says_so(harness: Harness) -> None:
    WORLD.broken.add("b")
    policy = CompensationPolicy(on_exhausted="stop")
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b", "c")
        with mock.patch("agboss_temporal.recovery.starting.MAX_HANDED_OVER", 2):
            found = await recover(harness, handle, policy=policy)
        assert [u.verdict for u in found.undos] == ["undone", "failed", "not_run"]
        assert found.status == "partial"
        assert refunds(handle) == ["refund:c"]


async def test_a_large_plan_is_several_recoveries_in_one_order(harness: Harness) -> None:
    WORLD.broken.add("d")
    WORLD.gate("refund:e")
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, *"abcde")
        with mock.patch("agboss_temporal.recovery.starting.MAX_HANDED_OVER", 2):
            for _ in range(2):  # while the first is at work, no other is started
                first = await recover(harness, handle, wait=False)
                assert (len(first.undos), first.left, first.status) == (2, 3, "running")
            rest = asyncio.create_task(recover(harness, handle))
            await until_undone(handle, "at:refund:e")
            WORLD.gate("refund:e").set()
            found = await rest
        assert len(found.recovery_ids) == 3
        assert refunds(handle) == [f"refund:{item}" for item in "ecba"]
        assert [u.verdict for u in found.undos].count("failed") == 1
        WORLD.broken.clear()
        assert (await recover(harness, handle)).status == "completed"
        assert refunds(handle)[-1] == "refund:d"


async def test_the_entry_that_is_too_large_for_a_plan_is_left_to_a_person(
    harness: Harness,
) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a", "b")
        with mock.patch("agboss_temporal.recovery.starting.payload_limit", return_value=10):
            found = await recover(harness, handle)
        assert (found.undos, len(found.notes), found.is_clean) == ((), 2, False)
        assert "too large" in found.notes[0]
        assert undone(handle.id) == []


async def test_a_recovery_of_another_client_s_making_is_not_guessed_at(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a")
        description = await handle.describe()
        other = await harness.client.start_workflow(
            Steps.run,
            args=[[]],
            id=f"agboss-recovery/{handle.id}/{description.run_id}/1",
            task_queue=queue,
        )
        with pytest.raises(RecoveryRefused) as caught:
            await recovery.plan(harness.client, handle.id)
        assert caught.value.why == "unreadable"
        await other.terminate()


async def test_a_long_id_is_left_out_of_the_recovery_s(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        long = f"{'x' * 900}-{len(WORLD.timeline)}"
        handle = await harness.start(queue, Steps.run, ["a"], id=long)
        await until_observed(handle)
        await handle.terminate()
        found = await recovery.recover(harness.client, handle.id)
        replayed_too(harness, handle, found.recovery_ids)
        assert found.recovery_ids == (f"agboss-recovery/{handle.result_run_id}/1",)
        assert verdicts(found) == [("charge", "undone")]
        run = harness.client.get_workflow_handle(found.recovery_ids[0])
        assert (await run.describe()).status is WorkflowExecutionStatus.COMPLETED
