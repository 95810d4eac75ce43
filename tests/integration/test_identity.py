"""Keys: one for each entry, the same wherever it is asked for (DESIGN §9)."""

from __future__ import annotations

import uuid

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from agboss_temporal import action, idempotency_key
from tests.integration import identity_flows as flows
from tests.support.acts import ACTIVITIES, WORLD, Receipt, refund
from tests.support.harness import Harness, records, until_did, until_event

ATTEMPTS: dict[str, list[str]] = {}


@action(compensate_with=refund)
@activity.defn
async def flaky(item: str) -> Receipt:
    """Fails twice, after it has told which key it used."""
    seen = ATTEMPTS.setdefault(activity.info().workflow_id or "", [])
    seen.append(idempotency_key())
    if len(seen) < 3:
        raise ApplicationError("try again")
    return Receipt(item)


async def test_the_ordinal_counts_every_call(harness: Harness) -> None:
    done = await harness.run(flows.Keys)
    [reserved] = records(done, "reserve")
    charged = records(done, "charge")
    [shipped] = records(done, "ship")
    keys = [reserved.action_key, *(c.action_key for c in charged), shipped.committer_key]
    seeds = {str(key).rsplit("-", 1)[0] for key in keys}
    assert len(seeds) == 1
    assert [str(key).rsplit("-", 1)[1] for key in keys] == ["1", "3", "6", "5"]
    assert {r.undoes for r in records(done, "refund")} == {
        charged[0].action_key,
        charged[1].action_key,
    }


async def test_each_call_has_a_key_of_its_own_that_is_a_uuid(harness: Harness) -> None:
    done = await harness.run(flows.Keys)
    given = [key for _, key in WORLD.keys[done.workflow_id]]
    assert len(set(given)) == len(given) == 6
    assert all(str(uuid.UUID(key)) == key for key in given)


async def test_every_attempt_uses_the_same_key(harness: Harness) -> None:
    async with harness.worker([flows.Flaky], [*ACTIVITIES, flaky]) as queue:
        handle = await harness.start(queue, flows.Flaky.run)
        await until_did(handle, "charge:after")
        await handle.signal("proceed")
        await harness.finish(handle)
    assert len(ATTEMPTS[handle.id]) == 3
    assert len(set(ATTEMPTS[handle.id])) == 1


async def test_a_reset_keeps_old_keys_and_gives_new_calls_new_ones(harness: Harness) -> None:
    async with harness.worker([flows.Flaky], [*ACTIVITIES, flaky]) as queue:
        handle = await harness.start(queue, flows.Flaky.run)
        await until_did(handle, "charge:after")
        await until_event(handle, "ActivityTaskCompleted", 2)
        await handle.signal("proceed")
        before = await harness.finish(handle)
        point = [
            event.event_id
            for event, name in zip(before.history.events, before.events, strict=True)
            if name == "WorkflowTaskCompleted"
        ][1]
        response = await harness.client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=harness.client.namespace,
                workflow_execution=WorkflowExecution(
                    workflow_id=handle.id, run_id=handle.result_run_id or ""
                ),
                reason="test",
                workflow_task_finish_event_id=point,
                request_id=uuid.uuid4().hex,
                reset_reapply_type=ResetReapplyType.RESET_REAPPLY_TYPE_SIGNAL,
            )
        )
        again = harness.client.get_workflow_handle(handle.id, run_id=response.run_id)
        after = await harness.finish(again)
    old, new = records(before, "charge"), records(after, "charge")
    assert records(before, "flaky")[0].action_key == records(after, "flaky")[0].action_key
    assert {r.action_key for r in old}.isdisjoint(r.action_key for r in new)
    assert [str(r.action_key).rsplit("-", 1)[1] for r in new] == ["2", "3"]
    undone = {r.undoes for r in records(after, "refund")}
    assert undone == {r.action_key for r in new} | {records(after, "flaky")[0].action_key}


async def test_the_workflows_own_randomness_is_left_alone(harness: Harness) -> None:
    """The plain SDK, replaying what was recorded with the plugin, draws the same numbers."""
    done = await harness.run(flows.Drawn)
    await Replayer(workflows=[flows.PlainDrawn]).replay_workflow(done.history)
    assert len(set(done.result)) == 3
