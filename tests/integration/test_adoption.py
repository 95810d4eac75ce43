"""Adopting the plugin, and declarations, while runs are open (E9, A1, §9)."""

from __future__ import annotations

import asyncio

import pytest
from temporalio import activity
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from agboss_temporal import CompensationPlugin, CompensationReport, action, registry
from agboss_temporal.core import wire
from tests.integration import wiring_flows as flows
from tests.support.acts import ACTIVITIES, WORLD, Receipt
from tests.support.harness import Harness, events_of, names, records, until, until_did, until_event


@activity.defn
async def late_undo(receipt: Receipt) -> None:
    WORLD.did(f"late_undo:{receipt.item}")


@activity.defn(name="late_action")
async def not_yet_declared(item: str) -> Receipt:
    WORLD.did(f"late_action:{item}")
    return Receipt(item)


@action(compensate_with=late_undo)
@activity.defn
async def late_action(item: str) -> Receipt:
    WORLD.did(f"late_action:{item}")
    return Receipt(item)


async def test_e7_an_open_run_goes_on_under_the_plugin(harness: Harness) -> None:
    async with harness.worker([flows.PlainWaits], client=harness.plain) as queue:
        handle = await harness.start(queue, flows.PlainWaits.run)
        await until_did(handle, "charge:before")
        await until_event(handle, "WorkflowTaskCompleted", 2)
    async with harness.worker([flows.RecordedWaits], queue=queue):
        await handle.signal("proceed")
        done = await harness.finish(handle)
    assert done.world == ["charge:before", "charge:after", "refund:after", "refund:before"]
    charged = [r.action_key for r in _readable(done.history, "charge")]
    assert [str(key).rsplit("-", 1)[1] for key in charged] == ["2"]


async def test_e9_failed_runs_from_before_the_plugin_replay(harness: Harness) -> None:
    async with harness.worker([flows.PlainNamed], client=harness.plain) as queue:
        handle = await harness.plain.start_workflow(
            flows.PlainNamed.run, "fail", id=f"before-{queue}", task_queue=queue
        )
        await asyncio.wait([asyncio.ensure_future(_ended(handle))])
        history = await handle.fetch_history()
    await Replayer(workflows=[flows.RecordedNamed], plugins=[CompensationPlugin()]).replay_workflow(
        history
    )
    async with harness.worker([flows.RecordedNamed], queue=queue):
        again = harness.client.get_workflow_handle(handle.id)
        report = await again.query("agboss.compensation", result_type=CompensationReport)
    assert report.status == "none"
    assert not [e for e in WORLD.of(handle.id) if e.startswith("refund")]


async def test_e9_runs_that_continued_as_new_before_the_plugin_replay(harness: Harness) -> None:
    async with harness.worker([flows.PlainRenews], client=harness.plain) as queue:
        handle = await harness.plain.start_workflow(
            flows.PlainRenews.run, id=f"before-{queue}", task_queue=queue
        )
        assert await handle.result() == "second"
        WORLD.gate(handle.id).set()
        first = harness.plain.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        history = await first.fetch_history()
    assert names(history.events)[-1] == "WorkflowExecutionContinuedAsNew"
    await Replayer(
        workflows=[flows.RecordedRenews], plugins=[CompensationPlugin()]
    ).replay_workflow(history)


async def test_a_declaration_added_while_a_run_is_open(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran before it is undone as well; keys do not change, because they count every call."""
    everything = dict(registry._contracts)
    undeclared = {o: c for o, c in everything.items() if c.action != "late_action"}
    monkeypatch.setattr(registry, "_contracts", undeclared)
    before = [*ACTIVITIES, not_yet_declared]
    async with harness.worker([flows.CallsLate], before) as queue:
        handle = await harness.start(queue, flows.CallsLate.run)
        await until_did(handle, "charge:x")
        await until_event(handle, "WorkflowTaskCompleted", 3)
    monkeypatch.setattr(registry, "_contracts", everything)
    async with harness.worker(
        [flows.CallsLate], [*ACTIVITIES, late_action, late_undo], queue=queue
    ):
        await handle.signal("proceed")
        done = await harness.finish(handle)
    assert done.world[3:] == ["late_undo:two", "refund:x", "late_undo:one"]
    [charged] = records(done, "charge")
    assert str(charged.action_key).endswith("-2")
    assert [str(r.undoes)[-2:] for r in records(done, "late_undo")] == ["-3", "-1"]


async def test_unwound_runs_can_be_listed(harness: Harness) -> None:
    done = await harness.run(flows.RecordedNamed, "fail")

    async def listed() -> bool:
        query = f"TemporalChangeVersion='agboss-unwind-1' AND WorkflowId='{done.workflow_id}'"
        return [w.id async for w in harness.client.list_workflows(query)] == [done.workflow_id]

    await until(listed)


async def test_a_users_patch_callback_cannot_switch_the_unwind_off(harness: Harness) -> None:
    asked: list[str] = []

    def never(input: object) -> bool:
        asked.append(str(getattr(input, "patch_id", "")))
        return False

    done = await harness.run(flows.RecordedNamed, "fail", patch_activation_callback=never)
    assert "refund:b" in done.world
    assert asked == []
    unnamed = [flows.Unnamed, flows.UnnamedKid]
    async with harness.worker(unnamed, patch_activation_callback=never) as queue:
        handle = await harness.start(queue, flows.Unnamed.run)
        await harness.finish(handle)
        assert "MarkerRecorded" in names(await events_of(handle))
    assert "users-own" in asked


async def _ended(handle: object) -> None:
    with pytest.raises(Exception, match="failed"):
        await handle.result()  # type: ignore[attr-defined]


def _readable(history: WorkflowHistory, name: str) -> list[wire.CallRecord]:
    return [
        wire.decode(e.activity_task_scheduled_event_attributes.header.fields[wire.HEADER].data)
        for e in history.events
        if e.activity_task_scheduled_event_attributes.activity_type.name == name
        and wire.HEADER in e.activity_task_scheduled_event_attributes.header.fields
    ]
