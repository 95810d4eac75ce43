"""Continuing as new many times, and generations that end badly (H5)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ApplicationError

from agboss_temporal.core import carry
from tests.integration import generation_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.chains import carried_bytes, finish_chain, memo_of, runs_of, until_run
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    events_of,
    names,
    records,
    until,
    until_did,
    until_event,
)

HOURLY = RetryPolicy(initial_interval=timedelta(hours=1))
ACTS = [*ACTIVITIES, *flows.MARKS]


async def last_of(harness: Harness, handle: Handle, timeout: float = 30) -> Done:
    return await harness.finish(harness.client.get_workflow_handle(handle.id), timeout)


async def run_chain(harness: Harness, workflow: type, *args: object) -> tuple[Done, list[Handle]]:
    """Run a chain to its end."""
    async with harness.worker([workflow], ACTS) as queue:
        handle = await harness.start(queue, workflow.run, *args)  # type: ignore[attr-defined]
        done = await last_of(harness, handle)
    return done, await finish_chain(harness, handle, workflow)


# -- what is carried


async def test_h7_a_hundred_generations_carry_no_more_than_the_second(skipping: Harness) -> None:
    done, runs = await run_chain(skipping, flows.HundredGenerations, 100)
    assert len(runs) == 101
    sizes = [await carried_bytes(run) for run in runs]
    assert sizes[0] == 0
    assert min(sizes[1:]) > 0
    assert max(sizes) <= sizes[1] + 32
    assert done.world[-4:] == ["release:g100", "refund:third", "unmark:second", "refund:first"]
    assert sum(e.startswith(("release", "refund", "unmark")) for e in done.world) == 4


async def test_a_users_memo_is_read_in_every_generation_and_ours_is_removed(
    harness: Harness,
) -> None:
    async with harness.worker([flows.ReadsMemo]) as queue:
        handle = await harness.start(queue, flows.ReadsMemo.run, memo={"theirs": "kept"})
        done = await last_of(harness, handle)
    runs = await finish_chain(harness, handle, flows.ReadsMemo)
    assert done.result == [["kept"] * 4, ["theirs"]]
    assert [carry.MEMO in await memo_of(run) for run in runs] == [False, True, True, False]
    assert done.world == ["reserve:a", "ship:a"]


async def test_entries_in_doubt_are_carried_and_undone_first(harness: Harness) -> None:
    done, runs = await run_chain(harness, flows.CarriesDoubt)
    assert len(runs) == 3
    assert done.world[3:] == ["unmark:doubtful", "unmark:after", "unmark:before"]
    assert [e.outcome for e in done.report.entries] == ["unknown", "completed", "completed"]


async def test_an_undo_by_hand_in_a_later_generation_closes_what_was_carried(
    harness: Harness,
) -> None:
    async with harness.worker([flows.UndoesLater]) as queue:
        handle = await harness.start(queue, flows.UndoesLater.run)
        done = await last_of(harness, handle)
        first, _ = await finish_chain(harness, handle, flows.UndoesLater)
        before = await harness.describe(first)
    assert done.world[2:] == ["refund:by hand", "refund:automatic"]
    assert [r.undoes for r in records(done, "refund")] == [
        r.action_key for r in records(before, "charge")
    ]
    assert [r.explicit for r in records(done, "refund")] == [True, False]


async def test_r8_an_undo_repeated_in_a_later_generation_does_not_close_another(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    done, _ = await run_chain(harness, flows.RepeatsAnUndoLater)
    assert done.world[2:] == ["refund:by hand", "refund:by hand", "refund:automatic"]
    assert next(r.undoes for r in records(done, "refund")) == ""
    assert "closes none of them" in caplog.text


async def test_a_committer_in_a_later_generation_seals_only_what_names_it(
    harness: Harness,
) -> None:
    done, _ = await run_chain(harness, flows.CommitsOneLater)
    assert done.world[3:] == ["ship:both", "refund:b"]
    assert done.verdicts == [("charge", "undone")]


# -- keys


@pytest.fixture
def _broken() -> Iterator[None]:
    WORLD.broken.add("x")
    yield
    WORLD.broken.discard("x")


@pytest.mark.usefixtures("_broken")
async def test_an_undo_has_the_same_key_in_every_generation(harness: Harness) -> None:
    async with harness.worker([flows.UndoFailsOnce], ACTS) as queue:
        handle = await harness.start(queue, flows.UndoFailsOnce.run)
        await until_did(handle, "unmark:x")
        WORLD.broken.discard("x")
        await handle.signal("mend")
        await until_run(harness, handle, 3)
        done = await last_of(harness, handle)
    await finish_chain(harness, handle, flows.UndoFailsOnce)
    assert done.world == ["mark:x", "unmark:x", "unmark:x"]
    action, by_hand, automatic = flows.KEYS[handle.id]
    assert by_hand == automatic
    assert action[1] == action[2] == by_hand[2]
    assert by_hand[1] != by_hand[2]


# -- who does not adopt


async def test_a_retry_after_a_backoff_does_not_adopt(skipping: Harness) -> None:
    async with skipping.worker([flows.Backoff]) as queue:
        handle = await skipping.start(queue, flows.Backoff.run, retry_policy=HOURLY)
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert caught.value.cause.type == "Enough"
        # This server writes a retried failure as continued as new, which no code replays.
        runs = await runs_of(skipping, handle)
    assert [carry.MEMO in await memo_of(run) for run in runs] == [False, True, True, True]
    assert WORLD.of(handle.id) == [
        "charge:g0",
        "charge:attempt 1",
        "refund:attempt 1",
        "refund:g0",
        "charge:attempt 2",
        "refund:attempt 2",
        "charge:attempt 3",
        "refund:attempt 3",
    ]


async def test_the_retry_of_a_run_that_timed_out_does_not_adopt(harness: Harness) -> None:
    async with harness.worker([flows.TimesOutThenFails]) as queue:
        handle = await harness.start(
            queue,
            flows.TimesOutThenFails.run,
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
            run_timeout=timedelta(seconds=2),
        )
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        runs = await finish_chain(harness, handle, flows.TimesOutThenFails)
    assert [names(await events_of(run))[-1] for run in runs] == [
        "WorkflowExecutionContinuedAsNew",
        "WorkflowExecutionTimedOut",
        "WorkflowExecutionFailed",
    ]
    assert carry.MEMO in await memo_of(runs[2])
    assert WORLD.of(handle.id) == [
        "charge:g0",
        "charge:timed out",
        "charge:retried",
        "refund:retried",
    ]


async def test_the_runs_of_a_schedule_do_not_adopt(harness: Harness) -> None:
    """Each of them finds the memo that the first one was started with, here another run's."""
    _, [_, adopter] = await run_chain(harness, flows.CommitsOneLater)
    record = (await memo_of(adopter))[carry.MEMO]
    async with harness.worker([flows.BySchedule]) as queue:
        handle = await harness.start(
            queue,
            flows.BySchedule.run,
            cron_schedule="@every 1s",
            memo={carry.MEMO: RawValue(record)},
        )
        second = await until_run(harness, handle, 2)
        await until_event(second, "WorkflowExecutionFailed")
        await harness.client.get_workflow_handle(handle.id).terminate()
        assert carry.MEMO in await memo_of(second)
        await finish_chain(harness, handle, flows.BySchedule)
    assert WORLD.of(handle.id)[:4] == ["charge:by schedule", "refund:by schedule"] * 2


async def test_continuing_as_new_ends_a_schedule(harness: Harness) -> None:
    """So no run by schedule follows one that has adopted."""
    async with harness.worker([flows.CommitsOneLater]) as queue:
        handle = await harness.start(queue, flows.CommitsOneLater.run, cron_schedule="@every 1s")
        done = await last_of(harness, handle)
        _, last = await finish_chain(harness, handle, flows.CommitsOneLater)
    started = (await events_of(last))[0].workflow_execution_started_event_attributes
    assert started.cron_schedule == ""
    assert done.world[3:] == ["ship:both", "refund:b"]


# -- too much


@pytest.fixture
def _too_many() -> Iterator[None]:
    WORLD.broken.add("too many")
    yield
    WORLD.broken.discard("too many")


@pytest.mark.usefixtures("_too_many")
async def test_too_much_to_carry_is_said_with_its_figures_and_a_deploy_cures_it(
    harness: Harness,
) -> None:
    workflow = flows.TooManyUntilFixed
    async with harness.worker([workflow]) as queue:
        handle = await harness.start(queue, workflow.run, task_timeout=timedelta(seconds=1))

        async def told() -> bool:
            return "WorkflowTaskFailed" in names(await events_of(handle))

        await until(told)
        assert not [e for e in WORLD.of(handle.id) if e.startswith("refund")]
    [failed, *_] = [
        e.workflow_task_failed_event_attributes.failure.message
        for e in await events_of(handle)
        if e.HasField("workflow_task_failed_event_attributes")
    ]
    assert "would carry 30 open actions in" in failed
    assert "the limit is 40960" in failed
    WORLD.broken.discard("too many")
    async with harness.worker([workflow], queue=queue):
        done = await last_of(harness, handle)
    assert done.result == "went on"
    assert sum(e.startswith("refund") for e in done.world) == 30
    await finish_chain(harness, handle, workflow)
