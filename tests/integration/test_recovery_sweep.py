"""A sweep finds the runs that have left something open, and only those (R6)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from agboss_temporal import recovery
from agboss_temporal.recovery import Sweep, SweptRun
from agboss_temporal.recovery.runs import Runs
from tests.integration.family_flows import Member
from tests.integration.limit_flows import Many as Fails
from tests.integration.recovery_flows import ACTS, Order, Steps
from tests.integration.test_recovery_families import FAMILY, three_generations
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Handle, Harness, until, until_observed
from tests.support.recoveries import undone

EVERYTHING: list[Callable[..., Any]] = [*ACTIVITIES, *ACTS]


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    WORLD.gates.clear()
    WORLD.broken.clear()


@pytest.fixture
async def harness(server: WorkflowEnvironment) -> AsyncIterator[Harness]:
    """One harness: nothing here depends on the workflow cache."""
    harness = Harness(server.client)
    yield harness
    await harness.replay_all()


async def terminated(harness: Harness, queue: str, *items: str) -> Handle:
    handle = await harness.start(queue, Steps.run, list(items))
    if items:
        await until_observed(handle, len(items))
    await handle.terminate()
    return handle


async def listed(harness: Harness, query: str, count: int) -> None:
    """Wait until visibility knows so many."""

    async def there() -> bool:
        return (await harness.client.count_workflows(query)).count == count

    await until(there, 60)


def results(sweep: Sweep) -> dict[str, str]:
    return {run.workflow_id: run.result for run in sweep.runs}


async def test_r6_each_run_is_told_of_by_itself(harness: Harness) -> None:
    async with harness.worker([Steps, Order], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a")
        running = await harness.start(queue, Steps.run, ["b"])
        finished = await harness.start(queue, Order.run)
        await finished.result()
        nothing = await terminated(harness, queue)
        WORLD.broken.add("c")
        broken = await terminated(harness, queue, "c")
        query = f"TaskQueue = '{queue}'"
        await listed(harness, query, 5)
        seen: list[SweptRun] = []
        looked = await recovery.sweep(harness.client, query, dry_run=True, on_progress=seen.append)
        assert results(looked) == {
            handle.id: "planned",
            running.id: "open",
            finished.id: "none",
            nothing.id: "none",
            broken.id: "planned",
        }
        assert sorted(seen, key=repr) == sorted(looked.runs, key=repr)
        assert {r.workflow_id for r in looked.runs if not r.is_clean} == {handle.id, broken.id}
        assert undone(handle.id) == []
        done = await recovery.sweep(harness.client, query)
        assert results(done)[handle.id] == "completed"
        assert results(done)[broken.id] == "failed"
        assert [r.workflow_id for r in done.runs if not r.is_clean] == [broken.id]
        assert undone(handle.id) == ["refund:a"]
        WORLD.broken.clear()
        # The recoveries are listed by the same query, and are none of its business.
        again = await recovery.sweep(harness.client, query)
        assert again.is_clean
        assert results(again)[handle.id] == "none"
        assert undone(handle.id) == ["refund:a"]
        await running.terminate()


async def test_r6_a_run_with_a_newer_one_is_left_to_a_person(harness: Harness) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handle = await terminated(harness, queue, "a")
        newer = await harness.start(queue, Steps.run, [], id=handle.id)
        await newer.terminate()
        query = f"TaskQueue = '{queue}'"
        await listed(harness, query, 2)
        done = await recovery.sweep(harness.client, query)
        found = {run.run_id: run for run in done.runs}
        old = found[handle.result_run_id or ""]
        assert (old.result, old.is_clean) == ("newer-run", False)
        assert (newer.result_run_id or "") in old.detail
        assert found[newer.result_run_id or ""].result == "none"
        assert undone(handle.id) == []


async def test_r6_what_goes_wrong_with_one_run_stops_no_other(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness.worker([Steps], EVERYTHING) as queue:
        handles = [await terminated(harness, queue, "a") for _ in range(3)]
        query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Terminated'"
        await listed(harness, query, 3)
        read = Runs.read

        async def sometimes(self: Runs, workflow_id: str, run_id: str) -> Any:
            if workflow_id == handles[1].id:
                raise RuntimeError("a payload that is nobody's business")
            return await read(self, workflow_id, run_id)

        monkeypatch.setattr(Runs, "read", sometimes)
        done = await recovery.sweep(harness.client, query)
        assert sorted(results(done).values()) == ["completed", "completed", "error"]
        [bad] = [run for run in done.runs if not run.is_clean]
        assert (bad.workflow_id, bad.detail) == (handles[1].id, "RuntimeError")
        monkeypatch.undo()
        again = await recovery.sweep(harness.client, query)
        assert sorted(results(again).values()) == ["completed", "none", "none"]
        assert [undone(handle.id) for handle in handles] == [["refund:a"]] * 3


async def test_r6_a_family_in_one_sweep_is_undone_once(harness: Harness) -> None:
    handle, queue = await three_generations(harness)
    query = f"TaskQueue = '{queue}' AND ExecutionStatus = 'Terminated'"
    await listed(harness, query, 3)
    async with harness.worker([Member], queue=queue):
        done = await recovery.sweep(harness.client, query)
    assert done.is_clean
    assert sorted(undone(handle.id) + undone(f"{handle.id}-child")) == sorted(FAMILY)


async def test_a_query_that_is_none_is_refused(harness: Harness) -> None:
    with pytest.raises(RPCError):
        await recovery.sweep(harness.client, "this is no query")
    with pytest.raises(ValueError, match="at least 1"):
        await recovery.sweep(harness.client, "", concurrency=0)


@pytest.mark.slow
async def test_r6_thirty_of_three_hundred_are_found(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = f"sweep-{uuid.uuid4().hex[:8]}"
    # Nobody works there yet: these have done nothing when they are closed.
    idle = await asyncio.gather(*(start(harness, queue, Steps, []) for _ in range(230)))
    await asyncio.gather(*(handle.terminate() for handle in idle))
    async with harness.worker([Steps, Fails], EVERYTHING, queue=queue):
        unwound = await asyncio.gather(*(start(harness, queue, Fails, ["x"]) for _ in range(40)))
        ended = await asyncio.gather(*(h.result() for h in unwound), return_exceptions=True)
        assert all(isinstance(each, WorkflowFailureError) for each in ended)
        left = await asyncio.gather(*(start(harness, queue, Steps, ["a"]) for _ in range(30)))
        await asyncio.gather(*(until_observed(handle) for handle in left))
        await asyncio.gather(*(handle.terminate() for handle in left))
        query = f"TaskQueue = '{queue}' AND ExecutionStatus != 'Running'"
        await listed(harness, query, 300)
        most = at_once(monkeypatch)
        looked = await recovery.sweep(harness.client, query, dry_run=True, concurrency=5)
        assert len(looked.runs) == 300
        assert {r.workflow_id for r in looked.runs if r.result == "planned"} == {
            handle.id for handle in left
        }
        assert {r.result for r in looked.runs} == {"planned", "none"}
        assert most() == 5
        done = await recovery.sweep(harness.client, query)
        assert {r.workflow_id for r in done.runs if r.result == "completed"} == {
            handle.id for handle in left
        }
        assert done.is_clean
        assert all(undone(handle.id) == ["refund:a"] for handle in left)
        assert (await recovery.sweep(harness.client, query, dry_run=True)).is_clean


async def start(harness: Harness, queue: str, flow: Any, items: list[str]) -> Handle:
    """Start a run whose history is not replayed: there are too many."""
    handle: Handle = await harness.client.start_workflow(
        flow.run, items, id=f"w-{uuid.uuid4().hex[:12]}", task_queue=queue
    )
    return handle


def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count how many runs are looked at at once, at most."""
    going, most = 0, 0
    read = Runs.read

    async def counted(self: Runs, workflow_id: str, run_id: str) -> Any:
        nonlocal going, most
        going += 1
        most = max(most, going)
        try:
            return await read(self, workflow_id, run_id)
        finally:
            going -= 1

    monkeypatch.setattr(Runs, "read", counted)
    return lambda: most
