"""What no longer fits into a run's history is undone by children, one after another (E8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    ResetWorkflowExecutionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import WorkflowExecutionStatus
from temporalio.common import RawValue, VersioningBehavior, WorkerDeploymentVersion
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from agboss_temporal import idempotency
from agboss_temporal.core import recovery, wire
from agboss_temporal.core.budget import HistoryBudget
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.contract import Contract
from tests.integration import limit_flows as flows
from tests.integration.causal_flows import Causal
from tests.integration.codec import CONVERTERS
from tests.integration.test_causal import undos, waves
from tests.support.acts import ACTIVITIES, WORLD, Receipt
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    events_of,
    names,
    until,
    until_did,
    until_event,
)
from tests.support.limits import budgeted, children, did, headers, ids

EVERYTHING = [*ACTIVITIES, *flows.EVERYTHING]
FULL = HistoryBudget(events=1, per_child=2)
CHARGE = Contract("charge", undo="refund")
ITEMS = ["a", "b", "c", "d", "e"]


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")
    WORLD.gates.clear()


@pytest.fixture
async def full(harness: Harness) -> AsyncIterator[Harness]:
    """A harness whose runs have no room for any undo, and whose children take two."""
    async with budgeted(harness, FULL) as own:
        yield own


async def run(harness: Harness, flow: type, *args: object) -> tuple[Done, list[Handle]]:
    async with harness.worker([flow], EVERYTHING) as queue:
        handle = await harness.start(queue, flow.run, *args)  # type: ignore[attr-defined]
        done = await harness.finish(handle)
        return done, await children(harness, handle)


def verdicts(done: Done) -> list[str | None]:
    return [entry.verdict for entry in done.report.entries]


async def test_e8_the_order_holds_over_the_children(full: Harness) -> None:
    done, parts = await run(full, flows.Many, ITEMS)
    assert did(parts) == [
        ["refund:e", "refund:d"],
        ["refund:c", "refund:b"],
        ["refund:a"],
    ]
    assert done.world == [f"charge:{item}" for item in ITEMS]
    assert isinstance(done.error, ActivityError)
    started = [e for e in done.events if "ChildWorkflow" in e]
    assert (
        started
        == [
            "StartChildWorkflowExecutionInitiated",
            "ChildWorkflowExecutionStarted",
            "ChildWorkflowExecutionCompleted",
        ]
        * 3
    )


async def test_e8_the_parent_says_the_same_as_if_it_had_run_the_undos(
    harness: Harness, full: Harness
) -> None:
    alone = await harness.run(flows.Many, [*ITEMS, "broken"], activities=EVERYTHING)
    done, _ = await run(full, flows.Many, [*ITEMS, "broken"])
    assert done.verdicts == alone.verdicts
    assert done.report.counts == alone.report.counts == {"undone": 5, "failed": 1}
    assert [e.reason for e in done.report.entries] == [e.reason for e in alone.report.entries]
    assert (done.report.status, done.report.trigger) == ("partial", "node-failure")
    assert isinstance(done.error, ApplicationError)
    assert isinstance(alone.error, ApplicationError)
    assert done.error.message == alone.error.message
    assert done.error.type == "CompensationFailedError"
    times = [(e.started_at, e.ended_at) for e in done.report.entries]
    assert all(begun is not None and ended is not None for begun, ended in times)
    assert times == sorted(times)
    assert all(begun <= ended for begun, ended in times)  # type: ignore[operator]


async def test_e8_each_child_names_the_unwind_and_its_undos_the_run(full: Harness) -> None:
    done, parts = await run(full, flows.Many, ITEMS)
    assert [(r.hands_over, r.unwind, r.trigger, r.cause) for r in headers(done.history.events)] == [
        (number, 1, "node-failure", "Original") for number in (1, 2, 3)
    ]
    keys = [entry.key for entry in done.report.entries]
    found = []
    for part in parts:
        for event in await events_of(part):
            begun = event.activity_task_scheduled_event_attributes
            if event.HasField("activity_task_scheduled_event_attributes"):
                found.append(wire.decode(begun.header.fields[wire.HEADER].data))
    assert [r.undoes for r in found] == keys
    assert {r.origin for r in found} == {done.workflow_id}
    assert {r.unwind for r in found} == {1}


async def test_e8_undos_know_what_they_would_have_known(full: Harness) -> None:
    done, parts = await run(full, flows.Keeps, ["a", "b", "c"])
    told = [effect for effects in did(parts) for effect in effects]
    assert [e for e in told if e.startswith("let go")] == [
        f"let go:{item}:{item}!:node-failure" for item in ("c", "b", "a")
    ]
    assert {e for e in told if e.startswith("because")} == {"because:Original:it went wrong"}
    used = [e.split(":")[1] for e in done.world if e.startswith("key:")]
    assert [e.split(":")[1] for e in told if e.startswith("action key:")] == used[::-1]


async def test_e8_an_undos_own_key_is_that_of_the_run(harness: Harness, full: Harness) -> None:
    """The keys of undos are those that the run itself would have given them."""
    done, parts = await run(full, flows.Many, ["a", "b"])
    [(_, second), (_, first)] = [pair for part in parts for pair in WORLD.keys[part.id]]
    assert first != second
    expected = [undo_key(harness, done.workflow_id, e.key) for e in done.report.entries]
    assert [second, first] == expected


def undo_key(harness: Harness, workflow_id: str, key: str) -> str:
    """Derive the key that an undo has in the run whose history holds the entry."""
    identity = idempotency.ActivityIdentity(harness.client.namespace, workflow_id, key, "undo")
    token = idempotency.current.set(idempotency.IdentitySource(lambda: identity))
    try:
        return idempotency.idempotency_key()
    finally:
        idempotency.current.reset(token)


async def test_e8_what_fits_is_undone_in_the_run_until_it_fits_no_more(harness: Harness) -> None:
    """Signals that arrive during the unwind use up the room that the rest had."""
    held = f"held-{harness.cache}"
    gate = WORLD.gate(f"refund:{held}")
    async with (
        budgeted(harness, HistoryBudget(events=110, per_child=2)) as own,
        own.worker([flows.Many], EVERYTHING) as queue,
    ):
        handle = await own.start(queue, flows.Many.run, [*ITEMS, held])
        await until_did(handle, f"at:refund:{held}")
        for _ in range(40):
            await handle.signal("nothing")
        await until_event(handle, "WorkflowExecutionSignaled", 40)
        gate.set()
        done = await own.finish(handle)
        parts = await children(own, handle)
    assert [e for e in done.world if e.startswith("refund")] == [f"refund:{held}"]
    assert did(parts) == [["refund:e", "refund:d"], ["refund:c", "refund:b"], ["refund:a"]]
    assert verdicts(done) == ["undone"] * 6
    assert isinstance(done.error, ActivityError)


async def test_e8_a_plan_that_fits_starts_no_child(harness: Harness) -> None:
    async with budgeted(harness, HistoryBudget(events=110)) as own:
        done, parts = await run(own, flows.Many, ITEMS)
    assert parts == []
    assert [e for e in done.world if e.startswith("refund")] == [
        f"refund:{item}" for item in reversed(ITEMS)
    ]


async def test_e4_an_undo_that_gives_up_in_a_child_can_stop_the_rest(full: Harness) -> None:
    done, parts = await run(full, flows.Stops, ["a", "b", "c", "broken", "e"])
    assert did(parts) == [["refund:e"]]
    assert [(e.verdict, e.reason) for e in done.report.entries] == [
        ("undone", None),
        ("failed", "RefundBroken"),
        *[("not_run", "an undo before it gave up")] * 3,
    ]
    assert done.report.status == "partial"


async def test_e4_what_a_child_did_not_start_is_not_run(full: Harness) -> None:
    done, parts = await run(full, flows.Stops, ["a", "b", "c", "d", "broken"])
    assert did(parts) == [[]]
    assert verdicts(done) == ["failed", *["not_run"] * 4]
    assert done.report.status == "failed"


async def test_e3_the_total_timeout_bounds_the_children_too(skipping: Harness) -> None:
    stuck = f"stuck-{skipping.cache}"
    WORLD.gate(f"refund:{stuck}")
    async with budgeted(skipping, FULL) as own:
        done, parts = await run(own, flows.Hurried, ["a", "b", "c", stuck, "e"])
    assert did(parts) == [["refund:e", f"at:refund:{stuck}"]]
    assert verdicts(done) == ["undone", "failed", "not_run", "not_run", "not_run"]
    assert [e.reason for e in done.report.entries][2:] == ["total_timeout"] * 3


async def test_irreversible_and_in_doubt_entries_keep_their_places(full: Harness) -> None:
    items = ["a", "doubtful-1", "shred-b", "doubtful-2", "c"]
    done, parts = await run(full, flows.Many, items)
    assert did(parts) == [["undo:doubtful-2", "undo:doubtful-1"], ["refund:c", "refund:a"]]
    assert [(e.action, e.outcome, e.verdict) for e in done.report.entries] == [
        ("doubtful", "unknown", "undone"),
        ("doubtful", "unknown", "undone"),
        ("charge", "completed", "undone"),
        ("shred", "completed", "irreversible"),
        ("charge", "completed", "undone"),
    ]
    assert done.report.status == "partial"


# -- cancels, terminations


async def test_e6_a_cancelled_run_is_cancelled_again_in_the_middle(full: Harness) -> None:
    held = f"held-{full.cache}"
    gate = WORLD.gate(f"refund:{held}")
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "b", held], "wait")
        await until_event(handle, "ActivityTaskCompleted", 3)
        await handle.cancel()
        [first] = await children(full, handle, 1)
        await until_did(first, f"at:refund:{held}")
        await handle.cancel()
        gate.set()
        done = await full.finish(handle)
        parts = await children(full, handle)
    assert done.status == "CANCELED"
    assert did(parts) == [[f"at:refund:{held}", f"refund:{held}", "refund:b"], ["refund:a"]]
    assert done.report.status == "completed"
    for part in parts:
        assert "WorkflowExecutionCancelRequested" not in names(await events_of(part))


async def test_e6_a_cancel_during_the_hand_over_changes_nothing(full: Harness) -> None:
    held = f"held-{full.cache}"
    gate = WORLD.gate(f"refund:{held}")
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "b", held])
        [first] = await children(full, handle, 1)
        await until_did(first, f"at:refund:{held}")
        await handle.cancel()
        await until_event(handle, "WorkflowExecutionCancelRequested")
        gate.set()
        done = await full.finish(handle)
        parts = await children(full, handle)
    assert done.status == "FAILED"
    assert isinstance(done.error, ActivityError)
    assert did(parts)[1] == ["refund:a"]
    assert "RequestCancelExternalWorkflowExecutionInitiated" not in done.events
    assert "WorkflowExecutionCancelRequested" not in names(await events_of(first))


async def test_a_child_lets_nobody_cancel_it(full: Harness) -> None:
    held = f"held-{full.cache}"
    gate = WORLD.gate(f"refund:{held}")
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "b", held])
        [first] = await children(full, handle, 1)
        await until_did(first, f"at:refund:{held}")
        await first.cancel()
        await until_event(first, "WorkflowExecutionCancelRequested")
        gate.set()
        done = await full.finish(handle)
        await children(full, handle)
    assert isinstance(done.error, ActivityError)
    assert verdicts(done) == ["undone"] * 3


async def test_e8_a_child_outlives_its_parent(full: Harness) -> None:
    held = f"held-{full.cache}"
    gate = WORLD.gate(f"refund:{held}")
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "b", held])
        [first] = await children(full, handle, 1)
        await until_did(first, f"at:refund:{held}")
        await handle.terminate()
        gate.set()
        await asyncio.wait_for(first.result(), 20)
    assert WORLD.of(first.id) == [f"at:refund:{held}", f"refund:{held}", "refund:b"]
    assert names(await events_of(first))[-1] == "WorkflowExecutionCompleted"


async def test_e8_a_child_that_is_terminated_leaves_its_entries_failed(full: Harness) -> None:
    held = f"held-{full.cache}"
    gate = WORLD.gate(f"refund:{held}")
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "b", held])
        [first] = await children(full, handle, 1)
        await until_did(first, f"at:refund:{held}")
        await first.terminate()
        gate.set()
        done = await full.finish(handle)
        parts = await children(full, handle)
    assert did(parts)[1] == ["refund:a"]
    assert [(e.verdict, e.reason) for e in done.report.entries] == [
        ("failed", "handed to a workflow that ended with TerminatedError"),
        ("failed", "handed to a workflow that ended with TerminatedError"),
        ("undone", None),
    ]
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "CompensationFailedError"


# -- what is handed over


@pytest.mark.parametrize("converter", CONVERTERS)
async def test_e8_every_converter_and_codec_hands_over(harness: Harness, converter: str) -> None:
    plain = Harness(harness.plain, cache=harness.cache, data_converter=CONVERTERS[converter])
    async with budgeted(plain, FULL) as own:
        done, parts = await run(own, flows.Keeps, ["a", "b", "c"])
    told = [e for effects in did(parts) for e in effects if e.startswith("let go")]
    assert told == [f"let go:{item}:{item}!:node-failure" for item in ("c", "b", "a")]
    assert verdicts(done) == ["undone"] * 3
    secret = converter.endswith("encrypted")
    for part in parts:
        [event, *_] = await events_of(part)
        started = event.workflow_execution_started_event_attributes
        assert (b"encrypted" in started.input.payloads[0].metadata["encoding"]) == secret


async def test_e8_large_entries_go_to_children_of_their_own(harness: Harness) -> None:
    """What one input may hold bounds a child, and what no input can hold is undone here."""
    large, too_large = 1_200_000, 2 * 1024 * 1024 - 100
    calls = [("grow", large), ("grow", large), ("grow_bytes", too_large), ("grow", large)]
    async with budgeted(harness, HistoryBudget(events=1)) as own:
        done, parts = await run(own, flows.Calls, calls)
    assert did(parts) == [[f"shrink:{large}"]] * 3
    assert done.world == [f"shrink:{too_large}"]
    assert verdicts(done) == ["undone"] * 4
    assert "WorkflowTaskFailed" not in done.events


async def test_e10_options_and_queues_are_those_of_the_run(full: Harness) -> None:
    async with (
        full.worker([flows.Calls], EVERYTHING) as queue,
        full.worker([], [flows.undo_elsewhere], queue="undos-of-limit"),
    ):
        handle = await full.start(queue, flows.Calls.run, [("charge", "a"), ("act_elsewhere", "b")])
        done = await full.finish(handle)
        [part] = await children(full, handle)
    assert did([part]) == [["elsewhere:undos-of-limit", "refund:a"]]
    begun = [
        e.activity_task_scheduled_event_attributes
        for e in await events_of(part)
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
    assert [b.task_queue.name for b in begun] == ["undos-of-limit", queue]
    assert [b.start_to_close_timeout.seconds for b in begun] == [7, 30]
    assert [b.schedule_to_close_timeout.seconds for b in begun] == [3600, 3600]
    assert verdicts(done) == ["undone"] * 2


async def test_e2_causal_order_holds_over_the_children(harness: Harness) -> None:
    shape = [["a"], ["b", "c", "doubtful-d"], ["e"], ["f", "g"]]
    async with budgeted(harness, HistoryBudget(events=1, per_child=3)) as own:
        done, parts = await run(own, Causal, shape)
    found = [waves(undos(await events_of(part))) for part in parts]
    assert found == [[{"f", "g"}, {"e"}], [{"b", "c", "doubtful-d"}], [{"a"}]]
    assert verdicts(done) == ["undone"] * 7


async def test_e8_causal_undos_in_flight_end_before_the_rest_is_handed_over(
    harness: Harness,
) -> None:
    held = [f"held-{n}-{harness.cache}" for n in range(2)]
    gates = [WORLD.gate(f"refund:{item}") for item in held]
    async with (
        budgeted(harness, HistoryBudget(events=120)) as own,
        own.worker([flows.Signalled], EVERYTHING) as queue,
    ):
        handle = await own.start(queue, flows.Signalled.run, [["a"], ["b", "c"], held])
        for item in held:
            await until_did(handle, f"at:refund:{item}")
        for _ in range(60):
            await handle.signal("nothing")
        await until_event(handle, "WorkflowExecutionSignaled", 60)
        gates[0].set()
        await until_did(handle, f"refund:{held[0]}")
        gates[1].set()
        done = await own.finish(handle)
        [part] = await children(own, handle)
    assert waves(undos(list(done.history.events))) == [set(held)]
    assert waves(undos(await events_of(part))) == [{"b", "c"}, {"a"}]
    assert verdicts(done) == ["undone"] * 5


async def test_a_run_that_is_reset_in_the_middle_replays_what_it_handed_over(
    full: Harness,
) -> None:
    """A reset gives the run another id; children that it started before are still its own."""
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "b", "c"])
        await full.finish(handle)
        parts = await children(full, handle)
        events = await events_of(handle)
        first = names(events).index("ChildWorkflowExecutionCompleted")
        point = next(e.event_id for e in events[first:] if names([e]) == ["WorkflowTaskCompleted"])
        answer = await full.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=full.client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=handle.id),
                reason="test",
                request_id=handle.id,
                workflow_task_finish_event_id=point,
            )
        )
        again = full.client.get_workflow_handle(handle.id, run_id=answer.run_id)
        done = await full.finish(again)
        full._runs.append((again, [flows.Many]))
    found = ids(done.history.events)
    assert found[0] == parts[0].id
    assert found[1] != parts[1].id
    assert WORLD.of(found[1]) == ["refund:a"]
    assert done.events.count("WorkflowTaskFailed") == 1, "only that of the reset"
    assert verdicts(done) == ["undone"] * 3


# -- compensate()


async def test_u3_compensate_hands_over_and_the_run_goes_on(full: Harness) -> None:
    done, parts = await run(full, flows.GoesOn, ["a", "b", "c"])
    assert done.status == "COMPLETED"
    assert done.result == "compensated"
    assert did(parts) == [["refund:c", "refund:b"], ["refund:a"]]
    assert done.world == ["charge:a", "charge:b", "charge:c", "charge:after"]
    keys = [
        wire.decode(
            e.activity_task_scheduled_event_attributes.header.fields[wire.HEADER].data
        ).action_key
        for e in done.history.events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
    assert [str(key).split("-")[1] for key in keys] == ["1", "2", "3", "4"]


async def test_u3_compensate_tells_what_a_child_could_not_undo(full: Harness) -> None:
    done, _ = await run(full, flows.GoesOn, ["a", "broken", "c"])
    assert done.result == ("compensation partial: 2 of 3 undone, left behind: charge (failed)")


# -- the workflow by itself


async def test_the_status_of_a_child_can_be_asked(full: Harness) -> None:
    async with full.worker([flows.Many], EVERYTHING) as queue:
        handle = await full.start(queue, flows.Many.run, ["a", "broken"])
        await full.finish(handle)
        [part] = await children(full, handle)
        own = await full.describe(part)
    assert own.status == WorkflowExecutionStatus.COMPLETED.name
    assert own.verdicts == [("charge", "failed"), ("charge", "undone")]
    assert (own.report.status, own.report.trigger) == ("partial", "node-failure")


async def test_h2_whoever_starts_it_it_does_the_same_and_no_early_cancel_stops_it(
    harness: Harness,
) -> None:
    """Started by a client, for a run that is long gone, and cancelled before any worker saw it."""
    receipts = [
        harness.client.data_converter.payload_converter.to_payload(Receipt(i)) for i in "ab"
    ]
    plan = recovery.RecoveryPlan(
        workflow_id="long-gone",
        run_id="its-run",
        entries=[
            Carried(f"5eed-{n}", CHARGE, receipt.SerializeToString())
            for n, receipt in enumerate(receipts, 1)
        ],
        order=[1, 0],
        unwind=3,
        trigger="operator-request",
    )
    given = Payload(metadata={"encoding": b"binary/plain"}, data=recovery.encode_plan(plan))
    queue = f"q-recovery-{harness.cache}"
    handle = await harness.client.start_workflow(
        recovery.RECOVERY_TYPE,
        RawValue(given),
        id=f"recovers-{harness.cache}",
        task_queue=queue,
        result_type=RawValue,
    )
    await handle.cancel()
    async with harness.worker([flows.Many], EVERYTHING, queue=queue):
        answer = await asyncio.wait_for(handle.result(), 20)
        harness._runs.append((handle, [flows.Many]))
    found = recovery.decode_result(answer.payload.data)
    assert [(key, o.verdict) for key, o in found.items()] == [
        ("5eed-2", "undone"),
        ("5eed-1", "undone"),
    ]
    assert WORLD.of(handle.id) == ["refund:b", "refund:a"]
    used = [key for _, key in WORLD.keys[handle.id]]
    assert used == [
        undo_key(harness, "long-gone", "5eed-2"),
        undo_key(harness, "long-gone", "5eed-1"),
    ]


async def test_e8_a_versioned_worker_hands_over_too(harness: Harness) -> None:
    version = WorkerDeploymentVersion(f"limit-{harness.cache}", "1")
    deployment = WorkerDeploymentConfig(
        version=version,
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )
    async with (
        budgeted(harness, FULL) as own,
        own.worker([flows.Many], EVERYTHING, deployment_config=deployment) as queue,
    ):
        await make_current(own, version)
        handle = await own.start(queue, flows.Many.run, ["a", "b", "c"])
        done = await own.finish(handle)
        parts = await children(own, handle)
    assert did(parts) == [["refund:c", "refund:b"], ["refund:a"]]
    assert verdicts(done) == ["undone"] * 3


async def make_current(harness: Harness, version: WorkerDeploymentVersion) -> None:
    """Route new runs to a version, as soon as its worker has polled."""
    request = SetWorkerDeploymentCurrentVersionRequest(
        namespace=harness.client.namespace,
        deployment_name=version.deployment_name,
        build_id=version.build_id,
        ignore_missing_task_queues=True,
    )

    async def done() -> bool:
        try:
            await harness.client.workflow_service.set_worker_deployment_current_version(request)
        except RPCError as err:
            if err.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION):
                return False
            raise
        return True

    await until(done)
