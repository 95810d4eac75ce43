"""Open actions go along when a run continues as new (H5)."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random
from uuid import UUID

from temporalio.api.common.v1 import Payload
from temporalio.common import RetryPolicy

from agboss_temporal.core import carry
from agboss_temporal.core.contract import Contract
from agboss_temporal_interceptors.continuing import MAX_CARRIED_BYTES
from tests.integration import continue_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
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


async def last_of(harness: Harness, handle: Handle) -> Done:
    """Finish a chain of runs and describe the last one; every history is replayed."""
    latest = harness.client.get_workflow_handle(handle.id)
    return await harness.finish(latest)


async def test_open_actions_of_every_generation_are_undone(harness: Harness) -> None:
    async with harness.worker([flows.Generations]) as queue:
        handle = await harness.start(queue, flows.Generations.run, "fail", 3)
        done = await last_of(harness, handle)
        harness._runs.append((harness.client.get_workflow_handle(handle.id), [flows.Generations]))
    charged = [f"charge:g{n}" for n in range(4)]
    assert done.world == charged + [f"refund:g{n}" for n in reversed(range(4))]
    assert done.report.status == "completed"
    assert len(done.report.entries) == 4


async def test_the_key_of_a_carried_action_is_kept(harness: Harness) -> None:
    async with harness.worker([flows.Generations]) as queue:
        handle = await harness.start(queue, flows.Generations.run, "fail", 1)
        done = await last_of(harness, handle)
        before = await harness.describe(
            harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        )
    [carried] = records(before, "charge")
    assert [r.undoes for r in records(done, "refund")][1] == carried.action_key


async def test_a_cancel_in_a_later_generation_undoes_all(harness: Harness) -> None:
    async with harness.worker([flows.Generations]) as queue:
        handle = await harness.start(queue, flows.Generations.run, "wait", 2)
        await until_did(handle, "charge:g2")
        latest = harness.client.get_workflow_handle(handle.id)
        await until_event(latest, "ActivityTaskCompleted")
        await latest.cancel()
        done = await last_of(harness, handle)
    assert done.status == "CANCELED"
    assert done.world[3:] == ["refund:g2", "refund:g1", "refund:g0"]


async def test_a_users_memo_is_kept(harness: Harness) -> None:
    for how, expected in (("return", "old"), ("own memo", "new")):
        async with harness.worker([flows.Generations]) as queue:
            handle = await harness.start(
                queue, flows.Generations.run, how, 1, memo={"theirs": "old"}
            )
            done = await last_of(harness, handle)
            description = await harness.client.get_workflow_handle(handle.id).describe()
        assert await description.memo_value("theirs") == expected
        assert len(done.world) == (2 if how == "return" else 4)


async def test_a_committer_seals_what_was_carried_and_the_memo_is_cleared(
    harness: Harness,
) -> None:
    async with harness.worker([flows.CommitsLater]) as queue:
        handle = await harness.start(queue, flows.CommitsLater.run)
        done = await last_of(harness, handle)
    assert done.world == ["reserve:a", "ship:a"]
    assert done.result == []


async def test_running_actions_settle_first(harness: Harness) -> None:
    async def let_go(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    async with harness.worker([flows.StillRuns]) as queue:
        handle = await harness.start(queue, flows.StillRuns.run)
        await let_go(handle)
        done = await last_of(harness, handle)
    effects = [e for e in done.world if not e.startswith("at:")]
    assert effects == ["charge:before", "charge:slow", "refund:slow", "refund:before"]


async def test_a_cancel_while_actions_settle_is_not_lost(harness: Harness) -> None:
    async with harness.worker([flows.StillRuns]) as queue:
        handle = await harness.start(queue, flows.StillRuns.run)
        await until_event(handle, "ActivityTaskCancelRequested")
        await handle.cancel()
        await until_event(handle, "WorkflowExecutionCancelRequested")
        WORLD.gate(handle.id).set()
        done = await harness.finish(handle)
    assert done.status == "CANCELED"
    assert done.world[-2:] == ["refund:slow", "refund:before"]


async def test_a_retry_does_not_adopt(harness: Harness) -> None:
    """The first attempt undoes what it was handed; the next finds the same memo."""
    async with harness.worker([flows.Retried]) as queue:
        handle = await harness.start(
            queue,
            flows.Retried.run,
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
        )
        done = await last_of(harness, handle)
    assert done.result == "done"
    assert done.world == ["charge:g0", "refund:g0"]


async def test_too_many_open_actions_fail_the_task_with_the_figure(harness: Harness) -> None:
    async with harness.worker([flows.TooMany]) as queue:
        handle = await harness.start(queue, flows.TooMany.run)

        async def told() -> bool:
            return any(
                "would carry 30 open actions"
                in e.workflow_task_failed_event_attributes.failure.message
                for e in await events_of(handle)
            )

        await until(told)
        await handle.terminate()
    assert not [e for e in WORLD.of(handle.id) if e.startswith("refund")]


async def test_too_much_to_carry_unwinds_where_it_fails_the_run(harness: Harness) -> None:
    done = await harness.run(flows.TooManyFails)
    assert done.status == "FAILED"
    assert sum(e.startswith("charge") for e in done.world) == 30
    assert sum(e.startswith("refund") for e in done.world) == 30


async def test_a_busy_handler_does_not_keep_a_run_from_continuing(harness: Harness) -> None:
    async with harness.worker([flows.BusyHandler]) as queue:
        handle = await harness.start(queue, flows.BusyHandler.run)
        first = harness.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        await until_did(handle, "charge:main")
        await handle.signal("act")
        await until_did(handle, f"at:{handle.id}")
        await handle.signal("renew")
        await until_event(first, "ActivityTaskCancelRequested")
        await handle.signal("undo")
        await until_event(first, "WorkflowExecutionSignaled", 3)
        WORLD.gate(handle.id).set()
        done = await last_of(harness, handle)
        assert names(await events_of(first))[-1] == "WorkflowExecutionContinuedAsNew"
    effects = [e for e in done.world if not e.startswith("at:")]
    assert effects == ["charge:main", "charge:handler", "refund:handler", "refund:main"]


async def test_a_handler_that_continues_as_new_hands_over_too(harness: Harness) -> None:
    async with harness.worker([flows.BySignal], ACTIVITIES) as queue:
        handle = await harness.start(queue, flows.BySignal.run)
        await until_did(handle, "charge:main")
        await until_event(handle, "ActivityTaskCompleted")
        await handle.signal("renew")
        done = await last_of(harness, handle)
    assert done.world == ["charge:main", "charge:handler", "refund:handler", "refund:main"]


def receipt(random: Random) -> bytes:
    """A small result, as an activity might return it: no two are alike."""
    order = UUID(int=random.getrandbits(128))
    amount = random.randrange(1_000_000) / 100
    at = f"2026-01-31T12:{random.randrange(60):02}:{random.randrange(60):02}.{random.random()}Z"
    fields = {"id": str(order), "item": f"SKU-{random.randrange(10**6)}", "amount": amount}
    return json.dumps({**fields, "at": at}).encode()


def test_300_small_entries_fit() -> None:
    contract = Contract("reserve_stock", undo="release_stock", committer="ship_order")
    random = Random(1)
    payloads = [
        Payload(metadata={"encoding": b"json/plain"}, data=receipt(random)) for _ in range(300)
    ]
    entries = [
        carry.Carried(
            f"{0xDEADBEEF12345678:x}-{n}", contract, payload.SerializeToString(), task_queue="q"
        )
        for n, payload in enumerate(payloads)
    ]
    data = carry.encode(entries, "run")
    assert len(payloads[0].data) > 110
    assert 20_000 < len(data) < MAX_CARRIED_BYTES
    assert carry.decode(data) == entries
    assert json.loads(data)["n"] == 300
