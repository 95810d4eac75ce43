"""Children are walked, and each is asked itself what it has left open (R9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from temporalio.client import WorkflowExecutionStatus

from agboss_temporal import recovery
from agboss_temporal.core.budget import HistoryBudget
from tests.integration import limit_flows
from tests.integration.family_flows import Member
from tests.integration.recovery_family_flows import Head, Heir, Voyage
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.chains import runs_of
from tests.support.families import relative, until_charged, until_status
from tests.support.harness import Handle, Harness, until, until_observed
from tests.support.limits import budgeted, children
from tests.support.recoveries import outside, recover, undone

ALL: Sequence[type] = [Member, Head, Heir, Voyage]
FAMILY = ["refund:level 2", "refund:level 1", "refund:level 0"]


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    WORLD.gates.clear()
    WORLD.broken.clear()


async def three_generations(harness: Harness) -> tuple[Handle, str]:
    """Three generations that are all terminated while there is no worker."""
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, Member.run, "wait", 2)
        await until_charged(relative(harness, handle, "child", "child"), "charge:level 2")
    for name in (("child", "child"), ("child",), ()):
        await relative(harness, handle, *name).terminate()
    return handle, queue


async def test_r9_three_generations_are_undone_newest_first(harness: Harness) -> None:
    handle, queue = await three_generations(harness)
    plan = await recovery.plan(harness.client, handle.id)
    assert [u.workflow_id for u in plan.undos] == [
        f"{handle.id}-child-child",
        f"{handle.id}-child",
        handle.id,
    ]
    assert plan.notes == ()
    async with harness.worker(ALL, queue=queue):
        found = await recover(harness, handle)
    assert found.status == "completed"
    assert undone(handle.id) == FAMILY


async def test_r9_an_undo_for_a_child_has_the_child_s_key(harness: Harness) -> None:
    handle, queue = await three_generations(harness)
    child = relative(harness, handle, "child")
    async with harness.worker(ALL, queue=queue):
        found = await recover(harness, handle)
        assert {u.workflow_id for u in found.undos} == {*(handle.id, child.id, f"{child.id}-child")}
        await recovery.recover(harness.client, child.id)
    assert undone(handle.id) == FAMILY
    assert undone(child.id) == []


@pytest.mark.parametrize("first", ["child", "parent"])
async def test_r9_parent_and_child_are_not_recovered_twice(harness: Harness, first: str) -> None:
    handle, queue = await three_generations(harness)
    child = relative(harness, handle, "child")
    async with harness.worker(ALL, queue=queue):
        order = [child, handle] if first == "child" else [handle, child]
        for each in order:
            await recovery.recover(harness.client, each.id)
    assert sorted(outside(handle.id)) == sorted([f"charge:level {n}" for n in range(3)] + FAMILY)


async def test_r9_parent_and_child_recovered_at_once_are_undone_once(harness: Harness) -> None:
    handle, queue = await three_generations(harness)
    ids = [handle.id, f"{handle.id}-child", f"{handle.id}-child-child"]
    async with harness.worker(ALL, queue=queue):
        await asyncio.gather(*(recovery.recover(harness.client, each) for each in ids))
        plan = await recovery.plan(harness.client, handle.id)
        assert plan.is_clean
    assert sorted(undone(handle.id)) == sorted(FAMILY)


async def test_r9_a_child_that_still_runs_undoes_itself(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, Member.run, "wait", 1)
        child = relative(harness, handle, "child")
        await until_charged(child, "charge:level 1")
    await handle.terminate()
    plan = await recovery.plan(harness.client, handle.id)
    assert [u.workflow_id for u in plan.undos] == [handle.id]
    [note] = plan.notes
    assert child.id in note
    assert "still runs" in note
    async with harness.worker(ALL, queue=queue):
        await until_status(child, WorkflowExecutionStatus.CANCELED)
        assert (await recovery.plan(harness.client, handle.id)).notes == ()
        await recover(harness, handle)
    assert outside(handle.id)[2:] == ["refund:level 1", "refund:level 0"]


async def left_while_travelling(harness: Harness, queue: str) -> tuple[Handle, Handle]:
    """Terminate a run whose child has charged and goes on."""
    handle = await harness.start(queue, Head.run, "travels")
    child = relative(harness, handle, "child")
    await until_observed(handle, 2)
    await until_charged(child, "charge:leg")
    await handle.terminate()
    return handle, child


async def test_r9_the_last_run_of_a_child_decides(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, Head.run, "has_an_heir")
        child = relative(harness, handle, "child")
        await until_observed(handle, 2)
        await until_charged(child, "charge:generation 2")
    await child.terminate()
    await handle.terminate()
    async with harness.worker(ALL, queue=queue):
        found = await recover(harness, handle)
    assert found.status == "completed"
    refunds = undone(handle.id)
    assert [r for r in refunds if "generation" in r] == [
        f"refund:generation {n}" for n in (2, 1, 0)
    ]
    assert refunds[-1] == "refund:before"
    assert len(refunds) == 5


async def test_r9_a_child_that_ended_well_is_undone_as_a_whole(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle, child = await left_while_travelling(harness, queue)
        plan = await recovery.plan(harness.client, handle.id)
        assert [u.action for u in plan.undos] == ["charge", "charge"]
        assert "still runs" in plan.notes[0]
        await child.signal(Voyage.land)
        await until_status(child, WorkflowExecutionStatus.COMPLETED)
        plan = await recovery.plan(harness.client, handle.id)
        assert [(u.action, u.outcome) for u in plan.undos] == [
            ("Voyage", "completed"),
            ("charge", "completed"),
            ("charge", "completed"),
        ]
        await recover(harness, handle)
        assert undone(handle.id) == [*("refund:voyage with leg", "refund:after", "refund:before")]


async def test_r9_a_child_that_was_terminated_is_undone_in_its_parts(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle, child = await left_while_travelling(harness, queue)
        await child.terminate()
        plan = await recovery.plan(harness.client, handle.id)
        assert (len(plan.undos), plan.notes) == (3, ())
        await recover(harness, handle)
        assert sorted(undone(handle.id)) == ["refund:after", "refund:before", "refund:leg"]


async def test_r9_what_a_retried_child_left_is_for_a_person(harness: Harness) -> None:
    async with harness.worker(ALL) as queue:
        handle = await harness.start(queue, Head.run, "retries")
        await until_observed(handle, 2)
        first = relative(harness, handle, "child")

        async def twice() -> bool:
            runs = await runs_of(harness, await _first_run(harness, first))
            return len(runs) == 2

        await until(twice)
        await until_status(first, WorkflowExecutionStatus.TIMED_OUT)
    await handle.terminate()
    plan = await recovery.plan(harness.client, handle.id)
    assert [u.action for u in plan.undos] == ["charge"] * 3
    [note] = plan.notes
    assert "has left 1 open" in note


async def _first_run(harness: Harness, child: Handle) -> Handle:
    description = await child.describe()
    first = description.raw_description.workflow_execution_info.first_run_id
    return harness.client.get_workflow_handle(child.id, run_id=first, first_execution_run_id=first)


# -- an unwind that was handed to children (E8)

EVERYTHING = [*ACTIVITIES, *limit_flows.EVERYTHING]


@pytest.fixture
async def full(harness: Harness) -> AsyncIterator[Harness]:
    """A harness whose runs have no room for any undo, and whose children take two."""
    async with budgeted(harness, HistoryBudget(events=1, per_child=2)) as own:
        yield own


async def hung(full: Harness, queue: str) -> Handle:
    """A run that hangs in the second of three children that undo for it."""
    WORLD.gate("refund:c")
    handle = await full.start(queue, limit_flows.Many.run, ["a", "b", "c", "d", "e"])
    parts = await children(full, handle, 2)

    async def there() -> bool:
        return "at:refund:c" in WORLD.of(parts[1].id)

    await until(there)
    return handle


def handed(handle: Handle) -> list[str]:
    """What was undone for a run, by whomever."""
    return [what for what in outside(handle.id) if what.startswith("refund:")]


async def test_e8_what_no_child_was_given_is_recovered(full: Harness) -> None:
    async with full.worker([limit_flows.Many], EVERYTHING) as queue:
        handle = await hung(full, queue)
        await handle.terminate()
        plan = await recovery.plan(full.client, handle.id)
        assert len(plan.undos) == 1
        [at_work] = plan.under_way
        assert at_work.startswith(f"agboss-recovery/{handle.id}/")
        before = await recover(full, handle, wait=False)
        assert (before.recovery_ids, before.left, before.status) == ((), 1, "pending")
        WORLD.gate("refund:c").set()
        assert (await recover(full, handle)).status == "completed"
        assert handed(handle) == [f"refund:{item}" for item in "edcba"]


async def test_e8_what_a_terminated_child_has_left_is_recovered(full: Harness) -> None:
    async with full.worker([limit_flows.Many], EVERYTHING) as queue:
        handle = await hung(full, queue)
        parts = await children(full, handle, 2)
        await handle.terminate()
        await parts[1].terminate()
        plan = await recovery.plan(full.client, handle.id)
        assert [u.started_at is not None for u in plan.undos] == [True, False, False]
        WORLD.gate("refund:c").set()
        del WORLD.gates["refund:c"]
        found = await recover(full, handle)
        assert found.status == "completed"
        assert set(handed(handle)) == {f"refund:{item}" for item in "abcde"}
        assert {h for h in handed(handle) if handed(handle).count(h) > 1} <= {"refund:c"}


async def test_e8_a_run_whose_children_have_undone_all_is_clean(full: Harness) -> None:
    async with full.worker([limit_flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, limit_flows.Many.run, ["a", "b", "c"])
        await full.finish(handle)
        await children(full, handle, 2)
        assert (await recovery.plan(full.client, handle.id)).is_clean
