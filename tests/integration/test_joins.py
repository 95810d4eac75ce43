"""A join's branches succeed together, or nothing of them is left standing (rule U2)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from temporalio.exceptions import ActivityError, ApplicationError

from tests.integration.join_flows import Joins
from tests.support.acts import WORLD
from tests.support.harness import (
    Done,
    Handle,
    Harness,
    records,
    until_did,
    until_event,
    until_observed,
)


@pytest.fixture(autouse=True)
def _gates() -> Iterator[None]:
    yield
    WORLD.gates.clear()


def effects(done: Done) -> list[str]:
    return [e for e in done.world if not e.startswith("at:")]


def charged(done: Done) -> list[str]:
    """What was charged, in the order in which the history has it completed."""
    results = [
        payload.data
        for e in done.history.events
        for payload in e.activity_task_completed_event_attributes.result.payloads
    ]
    return [json.loads(data)["item"] for data in results if b'"item"' in data]


async def fail_then_let_go(handle: Handle) -> None:
    """Let a branch fail when the others have got so far, then let the slow one end."""
    await until_did(handle, "charge:two")
    await until_did(handle, f"at:{handle.id}")
    await until_observed(handle, 4)
    await handle.signal("proceed")
    await until_event(handle, "ActivityTaskCancelRequested")
    WORLD.gate(handle.id).set()


async def cancel_then_let_go(handle: Handle) -> None:
    await until_did(handle, f"at:{handle.id}")
    await handle.cancel()
    await until_event(handle, "WorkflowExecutionCancelRequested")
    WORLD.gate(handle.id).set()


async def test_u2_results_come_in_the_order_of_the_branches(harness: Harness) -> None:
    done = await harness.run(Joins, "all_good")
    assert done.result == [["a", "b"], ["c"], "plain"]
    assert done.report.status == "none"
    assert sorted(r.unit for r in records(done, "charge")) == [(1, 1), (1, 1), (1, 2)]


async def test_u2_what_it_opened_belongs_to_the_run_afterwards(harness: Harness) -> None:
    done = await harness.run(Joins, "all_good_then_fails")
    assert sorted(effects(done)[2:]) == ["refund:a", "refund:b"]
    assert isinstance(done.error, ActivityError)


async def test_u2_no_branches(harness: Harness) -> None:
    assert (await harness.run(Joins, "nothing")).result == []


async def test_u2_a_failing_branch_takes_the_others_with_it(harness: Harness) -> None:
    done = await harness.run(Joins, "one_fails", meanwhile=fail_then_let_go)
    world = effects(done)
    assert world.index("charge:slow") < world.index("refund:slow")
    undone = [e for e in world if e.startswith("refund:")]
    assert undone[0] == "refund:slow"
    assert sorted(undone) == ["refund:one", "refund:slow", "refund:three", "refund:two"]
    assert undone.index("refund:two") < undone.index("refund:one")
    assert world[-2:] == ["note:failed: Boom", "charge:alternative"]
    assert "refund:before" not in world
    assert done.result == "completed"
    [unwind] = done.report.unwinds
    assert (unwind.trigger, unwind.cause, unwind.unit) == ("join", "Boom", "1")


async def test_u2_a_later_failure_undoes_only_what_is_still_open(harness: Harness) -> None:
    done = await harness.run(Joins, "one_fails_then_the_run", meanwhile=fail_then_let_go)
    assert effects(done)[-2:] == ["refund:alternative", "refund:before"]
    assert len([e for e in effects(done) if e.startswith("refund:")]) == 6


async def test_u2_newest_first_across_branches(harness: Harness) -> None:
    done = await harness.run(Joins, "one_fails", meanwhile=fail_then_let_go)
    # What two workers do at once may be reported in the other order: the history decides.
    completed = charged(done)[1:-1]
    undone = [e.removeprefix("refund:") for e in effects(done) if e.startswith("refund:")]
    assert undone == completed[::-1]


async def test_u2_uncaught_it_fails_the_run_with_the_first_error_as_its_cause(
    harness: Harness,
) -> None:
    done = await harness.run(Joins, "uncaught")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "JoinFailedError"
    assert not done.error.non_retryable
    assert isinstance(done.error.cause, ActivityError)
    assert "it went wrong" not in done.error.message
    assert "refund:a" in effects(done)
    assert done.report.status == "completed"


async def test_u2_what_must_not_be_retried_still_must_not(harness: Harness) -> None:
    done = await harness.run(Joins, "final_error")
    assert isinstance(done.error, ApplicationError)
    assert done.error.non_retryable
    assert effects(done) == ["charge:a", "refund:a"]


async def test_u2_a_bug_in_a_branch_fails_the_workflow_task_only(harness: Harness) -> None:
    async with harness.worker([Joins]) as queue:
        handle = await harness.start(queue, Joins.run, "a_bug")
        await until_event(handle, "WorkflowTaskFailed")
        failed = [
            e.workflow_task_failed_event_attributes.failure
            for e in (await handle.fetch_history()).events
            if e.HasField("workflow_task_failed_event_attributes")
        ]
        assert failed[0].application_failure_info.type == "KeyError"
        await handle.terminate()


async def test_u2_an_ordinary_error_can_be_caught_too(harness: Harness) -> None:
    done = await harness.run(Joins, "own_error")
    assert done.result == "LookupError"
    assert "refund:a" in effects(done)


async def test_u2_a_cancel_undoes_all_branches_and_goes_on(harness: Harness) -> None:
    done = await harness.run(Joins, "cancelled", meanwhile=cancel_then_let_go)
    assert done.status == "CANCELED"
    assert sorted(effects(done)[-3:-1]) == ["refund:a", "refund:slow"]
    assert effects(done)[-1] == "refund:before"
    assert [u.trigger for u in done.report.unwinds] == ["join", "run-cancel"]


async def test_u2_a_cancel_while_the_branches_settle_is_not_lost(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCancelRequested")
        await cancel_then_let_go(handle)

    done = await harness.run(Joins, "cancelled_and_failing", meanwhile=cancel)
    assert done.status == "CANCELED"
    assert effects(done) == ["charge:slow", "refund:slow"]


async def test_u2_nested(harness: Harness) -> None:
    async def proceed(handle: Handle) -> None:
        await until_did(handle, "charge:z")
        await until_observed(handle, 5)
        await handle.signal("proceed")

    done = await harness.run(Joins, "nested", meanwhile=proceed)
    assert done.result == ["inner failed", "outer failed"]
    assert effects(done)[-2:] == ["refund:after z", "refund:z"]
    assert sorted(e for e in effects(done) if e.startswith("refund:")) == [
        "refund:after z",
        "refund:x",
        "refund:y",
        "refund:z",
    ]


async def test_u2_in_a_unit(harness: Harness) -> None:
    done = await harness.run(Joins, "in_a_unit")
    assert sorted(effects(done)[3:5]) == ["refund:a", "refund:b"]
    assert effects(done)[5] == "refund:base"
    assert [u.unit for u in done.report.unwinds] == ["trip"]


async def test_u2_what_a_cancelled_branch_still_does_is_undone(harness: Harness) -> None:
    async def let_go(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(Joins, "a_branch_cleans_up", meanwhile=let_go)
    assert effects(done) == [
        "charge:slow",
        "charge:cleanup",
        "refund:cleanup",
        "refund:slow",
        "note:caught",
    ]


async def test_u2_r9_a_committer_in_another_branch_seals_what_that_one_handed_over(
    harness: Harness,
) -> None:
    async def proceed(handle: Handle) -> None:
        await until_observed(handle)
        await handle.signal("proceed")

    done = await harness.run(Joins, "commits_in_a_branch", meanwhile=proceed)
    assert effects(done) == ["reserve:a", "ship:a", "note:caught"]


async def test_u2_several_failures_are_counted_by_type(harness: Harness) -> None:
    done = await harness.run(Joins, "several_fail")
    assert "First" in done.result
    assert done.result.startswith(("1 of 3", "2 of 3"))


async def test_u2_in_a_task_group(harness: Harness) -> None:
    async def let_go(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(Joins, "in_a_task_group", meanwhile=let_go)
    assert done.result == "went on"
    assert "refund:a" in effects(done)
    assert "refund:beside" not in effects(done)


async def test_u2_a_branch_may_continue_as_new(harness: Harness) -> None:
    async with harness.worker([Joins]) as queue:
        first = await harness.start(queue, Joins.run, "continues")
        done = await harness.finish(harness.client.get_workflow_handle(first.id))
    assert "refund:carried" in effects(done)


async def test_u2_what_has_been_started_already_is_refused(harness: Harness) -> None:
    done = await harness.run(Joins, "refuses_started")
    assert "argument 1 is a" in done.result
    assert "argument 3 is a Future" in done.result
    assert effects(done) == ["charge:a"]
