"""Continuing as new at awkward moments (H5, U4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.service import RPCError

from tests.integration import renew_flows as flows
from tests.integration.codec import CONVERTERS
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.chains import finish_chain, until_run
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    events_of,
    names,
    until,
    until_did,
    until_event,
    until_observed,
)

EVERYTHING = [*ACTIVITIES, flows.pulse]
pytestmark = pytest.mark.filterwarnings("ignore:.*TMPRL1102")


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    yield
    WORLD.gates.clear()


def effects(done: Done) -> list[str]:
    return [e for e in done.world if not e.startswith("at:")]


async def last_of(harness: Harness, handle: Handle, flow: type) -> Done:
    return await harness.finish((await finish_chain(harness, handle, flow))[-1])


async def until_closed(run: Handle) -> None:
    async def there() -> bool:
        return (await run.describe()).status != WorkflowExecutionStatus.RUNNING

    await until(there, 10)


async def renewed(
    harness: Harness,
    how: str,
    signals: int = 1,
    then: Callable[[Handle], Awaitable[None]] | None = None,
) -> tuple[Done, list[str]]:
    """Send signals that continue as new while an action is at work, and do something then."""
    async with harness.worker([flows.Renewed], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Renewed.run, how)
        first = harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        await until_did(handle, f"at:{handle.id}")
        for number in range(signals):
            await handle.signal("renew")
            await until_event(first, "WorkflowExecutionSignaled", number + 1)
            await until_event(first, "ActivityTaskCancelRequested")
        await until_observed(first, signals, "WorkflowExecutionSignaled")
        if then is not None:
            await then(first)
        WORLD.gate(handle.id).set()
        await until_closed(first)
        closed = names(await events_of(first))[-1]
        return await last_of(harness, handle, flows.Renewed), [closed]


async def test_a_signal_renews_a_run_in_the_middle_of_a_loop(harness: Harness) -> None:
    done, closed = await renewed(harness, "loop")
    assert closed == ["WorkflowExecutionContinuedAsNew"]
    assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


async def test_a_signal_renews_a_run_whose_action_obeys_its_cancel(harness: Harness) -> None:
    done, closed = await renewed(harness, "pulse")
    assert closed == ["WorkflowExecutionContinuedAsNew"]
    assert effects(done) == ["charge:main", "refund:main"]


async def test_two_signals_renew(harness: Harness) -> None:
    done, closed = await renewed(harness, "parked", 2)
    assert closed == ["WorkflowExecutionContinuedAsNew"]
    assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


async def test_the_run_renews_and_then_a_signal(harness: Harness) -> None:
    async with harness.worker([flows.Renewed], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Renewed.run, "leaving")
        first = harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        await until_event(first, "ActivityTaskCancelRequested")
        await first.signal("renew")
        await until_observed(first, 1, "WorkflowExecutionSignaled")
        WORLD.gate(handle.id).set()
        await until_closed(first)
        done = await last_of(harness, handle, flows.Renewed)
    assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


async def test_a_signal_renews_while_a_unit_is_undone(harness: Harness) -> None:
    """The run catches the unit's error and goes on with an alternative."""
    async with harness.worker([flows.Renewed], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Renewed.run, f"alternative-{harness.cache}")
        first = harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        gate = WORLD.gate(f"refund:alternative-{harness.cache}")
        await until_did(handle, f"at:refund:alternative-{harness.cache}")
        await first.signal("renew")
        await until_observed(first, 1, "WorkflowExecutionSignaled")
        gate.set()
        await until_closed(first)
        done = await last_of(harness, handle, flows.Renewed)
    assert done.world[-1] == "refund:main"


async def test_a_signal_renews_a_run_that_returns(harness: Harness) -> None:
    """Whichever wins: what is done stays done, or is undone by the next run."""
    done, closed = await renewed(harness, "returns")
    if closed == ["WorkflowExecutionCompleted"]:
        assert effects(done) == ["charge:main", "charge:one"]
    else:
        assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


async def test_a_signal_and_the_run_renew(harness: Harness) -> None:
    done, closed = await renewed(harness, "suggested")
    assert closed == ["WorkflowExecutionContinuedAsNew"]
    assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


async def test_a_cancel_while_a_signal_renews(harness: Harness) -> None:
    async def cancel(first: Handle) -> None:
        await first.cancel()
        await until_event(first, "WorkflowExecutionCancelRequested")

    done, _ = await renewed(harness, "parked", then=cancel)
    assert done.status in ("CANCELED", "FAILED")
    assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


async def test_a_failure_of_the_run_while_a_signal_renews(harness: Harness) -> None:
    async def break_it(first: Handle) -> None:
        await first.signal("break_it")
        await until_event(first, "WorkflowExecutionSignaled", 2)

    done, _ = await renewed(harness, "breaks", then=break_it)
    assert effects(done) == ["charge:main", "charge:one", "refund:one", "refund:main"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("unit", ["charge:main", "charge:in unit", "refund:in unit", "refund:main"]),
        ("sealed", ["charge:main", "charge:in unit", "refund:in unit", "refund:main"]),
        ("except", ["charge:main", "charge:in except", "refund:in except", "refund:main"]),
        ("join-except", None),
        ("finally", ["charge:main", "charge:in try", "refund:in try", "refund:main"]),
    ],
)
async def test_renewed_from_inside(harness: Harness, how: str, expected: list[str] | None) -> None:
    async with harness.worker([flows.Renewed], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Renewed.run, how)
        await until_run(harness, handle, 2)
        done = await last_of(harness, handle, flows.Renewed)
    if expected is None:
        assert done.world[-1] == "refund:main"
        assert done.world.count("charge:b1") == done.world.count("refund:b1")
    else:
        assert effects(done) == expected


async def test_a_cancel_before_the_second_run_has_begun(harness: Harness) -> None:
    async with harness.worker([flows.Renewed], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Renewed.run, "hold")
        # Cancelled as soon as it exists: perhaps before its first task.
        await until_run(harness, handle, 2)
        second = harness.client.get_workflow_handle(handle.id)
        await second.cancel()
        done = await last_of(harness, handle, flows.Renewed)
    assert done.status == "CANCELED"
    assert done.world == ["charge:main", "refund:main"]


async def test_an_update_at_work_is_carried(harness: Harness) -> None:
    async with harness.worker([flows.Renewed], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Renewed.run, "wait")
        await until_observed(handle)
        update = await handle.start_update("hold", "u", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        await until_observed(handle, 3)
        await handle.signal("renew")
        await until_run(harness, handle, 2)
        with pytest.raises((WorkflowUpdateFailedError, RPCError)):
            await asyncio.wait_for(update.result(), 10)
        done = await last_of(harness, handle, flows.Renewed)
    assert done.world == [
        "charge:main",
        "charge:u",
        "reserve:u-committed",
        "release:u-committed",
        "refund:u",
        "refund:main",
    ]


@pytest.mark.parametrize("how", ["keep", "empty", "new", "upsert"])
@pytest.mark.parametrize("converter", ["default", "pydantic-encrypted"])
async def test_memos(harness: Harness, how: str, converter: str) -> None:
    own = Harness(harness.plain, cache=harness.cache, data_converter=CONVERTERS[converter])
    async with own.worker([flows.Memos], EVERYTHING) as queue:
        handle = await own.start(
            queue,
            flows.Memos.run,
            how,
            memo={"label": flows.Label("old", 1)},
        )
        await until_run(own, handle, 4)
        runs = await finish_chain(own, handle, flows.Memos)
        done = await own.finish(runs[-1])
    text = {"keep": ("old", 1), "empty": ("old", 1), "new": ("new", 2), "upsert": ("upserted", 3)}
    [found] = [e for e in done.world if e.startswith("note:")]
    assert found.startswith(f"note:found:['{text[how][0]}', {text[how][1]}"), found
    assert [e for e in done.world if e.startswith("refund")] == [
        "refund:g2",
        "refund:g1",
        "refund:g0",
    ]
    await own.replay_all()


async def test_plain_memo(harness: Harness) -> None:
    """What the SDK does with an empty memo."""
    async with harness.worker([flows.Plain], EVERYTHING) as queue:
        handle = await harness.start(
            queue, flows.Plain.run, "empty", memo={"label": flows.Label("old", 1)}
        )
        assert await handle.result() == ["old"]
