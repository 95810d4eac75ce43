"""Actions that were started and have no result (rule K5): in doubt, and what follows from it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.worker import UnsandboxedWorkflowRunner

from agboss_temporal.undo_context import UndoReason
from tests.integration import unknown_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Done, Handle, Harness, until_did, until_event

EVERYTHING = [*ACTIVITIES, *flows.ACTS]
BEFORE, AFTER = ["charge:before"], ["charge:after"]
UNDO_REST = ["refund:after", "refund:before"]

FAILURES = {
    "raised": "AfterEffect",
    "lost_result": "PayloadsTooLarge",
    "start_to_close": "START_TO_CLOSE",
    "heartbeat": "HEARTBEAT",
    "schedule_to_close": "SCHEDULE_TO_CLOSE",
    "never_started_retried": "SCHEDULE_TO_START",
    "never_started_once": "SCHEDULE_TO_START",
    "refused": "Refused",
    "declined": "Declined",
}
"""What each case really ends with, so that it is the case that it is meant to be."""


def forward(case: str) -> list[str]:
    acted = ["act:odd"] if flows.CASES[case].acted else []
    return [*BEFORE, *acted, *AFTER]


def doubts(done: Done) -> list[tuple[str, str, str]]:
    return [(d.name, d.kind, d.role) for d in done.report.in_doubt]


def message(done: Done) -> str:
    assert isinstance(done.error, ApplicationError)
    return done.error.message


@pytest.mark.parametrize("case", flows.CASES)
async def test_u1_u2_u3_u6_by_default_an_unknown_outcome_is_reported(
    harness: Harness, case: str
) -> None:
    done = await harness.run(flows.Unknown, "act_report", case, True, activities=EVERYTHING)
    kind = flows.CASES[case].kind
    assert message(done) == FAILURES[case]
    assert isinstance(done.error, ApplicationError)
    assert (done.status, done.error.type) == ("FAILED", "Original")
    assert done.world == [*forward(case), *UNDO_REST]
    assert doubts(done) == ([] if kind is None else [("act_report", kind, "action")])
    assert done.report.status == "completed"
    assert done.verdicts == [("charge", "undone"), ("charge", "undone")]


@pytest.mark.parametrize("case", flows.CASES)
async def test_u1_u2_u3_u6_an_unknown_outcome_is_undone_where_the_contract_says(
    harness: Harness, case: str
) -> None:
    """For each form of input: undone first, although it settled before another action."""
    unknown = flows.CASES[case].kind is not None
    async with harness.worker([flows.Unknown], EVERYTHING) as queue, AsyncExitStack() as stack:
        handles = {
            called: await harness.start(queue, flows.Unknown.run, called, case, True)
            for called in flows.UNDONE_WHEN_UNKNOWN
        }
        if case == "never_started_retried":
            # An undo runs on the queue of its action, so it waits there for a worker to come.
            for handle in handles.values():
                await until_event(handle, "ActivityTaskTimedOut")
            there = harness.worker((), EVERYTHING, queue=flows.NOBODY)
            await stack.enter_async_context(there)
        for called, handle in handles.items():
            done = await harness.finish(handle)
            undo = ["undo:odd"] if unknown else []
            assert (called, done.world) == (called, [*forward(case), *undo, *UNDO_REST])
            assert message(done) == FAILURES[case]
            assert (done.report.status, doubts(done)) == ("completed", [])
            outcomes = [(e.action, e.outcome) for e in done.report.entries]
            planned = [(called, "unknown")] if unknown else []
            assert outcomes == [*planned, ("charge", "completed"), ("charge", "completed")]
            if called == "act_context" and unknown:
                [ctx] = flows.CONTEXTS[handle.id]
                assert (ctx.outcome, ctx.has_result) == ("unknown", False)
                assert ctx.result() is None
                assert ctx.args(str, str) == ("odd", flows.CASES[case].how)
                assert ctx.reason == UndoReason("node-failure", "Original", FAILURES[case])


@pytest.mark.parametrize("case", ["raised", "start_to_close", "refused"])
@pytest.mark.parametrize("called", ["act_report", "act_args"])
async def test_an_unknown_outcome_leaves_a_run_that_returns_alone(
    harness: Harness, case: str, called: str
) -> None:
    done = await harness.run(flows.Unknown, called, case, False, activities=EVERYTHING)
    assert (done.status, done.world) == ("COMPLETED", forward(case))
    kind = flows.CASES[case].kind
    assert doubts(done) == ([] if kind is None else [(called, kind, "action")])
    assert done.report.status == "none"


async def test_a_result_that_the_server_refuses_is_a_lost_result(harness: Harness) -> None:
    done = await harness.run(
        flows.Unknown,
        "act_report",
        "lost_result",
        True,
        activities=EVERYTHING,
        disable_payload_error_limit=True,
    )
    assert message(done) == "ServerError"
    assert doubts(done) == [("act_report", "lost_result", "action")]


@pytest.mark.parametrize(
    ("how", "kind", "effects"),
    [
        ("obedient", "cancelled", ["act:odd"]),
        ("abandoned", "abandoned", ["act:odd"]),
        ("stubborn", "raised", ["act:odd", "late:odd"]),
    ],
)
@pytest.mark.parametrize("called", ["act_report", "act_args"])
async def test_u4_u11_a_cancelled_action_is_in_doubt_and_undone_after_its_end(
    harness: Harness, called: str, how: str, kind: str, effects: list[str]
) -> None:
    async def cancel(handle: Handle) -> None:
        await until_did(handle, "act:odd")
        await handle.cancel()

    done = await harness.run(
        flows.Cancelled,
        called,
        how,
        activities=EVERYTHING,
        meanwhile=cancel,
        max_heartbeat_throttle_interval=timedelta(milliseconds=50),
        default_heartbeat_throttle_interval=timedelta(milliseconds=50),
    )
    reported = called == "act_report"
    undo = [] if reported else ["undo:odd"]
    assert done.world == [*BEFORE, *effects, *undo, "refund:before"]
    assert doubts(done) == ([(called, kind, "action")] if reported else [])
    assert (done.status, type(done.error)) == ("CANCELED", CancelledError)
    assert done.report.trigger == "run-cancel"


async def test_in_doubt_entries_are_undone_first_newest_started_first(harness: Harness) -> None:
    done = await harness.run(flows.Several, activities=EVERYTHING)
    undos = [effect for effect in done.world if effect.startswith(("undo", "refund"))]
    assert undos == ["undo:newer", "undo:older", "refund:last", "undo:fine", "refund:first"]
    assert [e.outcome for e in done.report.entries] == ["unknown"] * 2 + ["completed"] * 3
    assert done.report.in_doubt == ()


async def test_r9_a_committer_in_doubt_seals_nothing_and_is_reported(harness: Harness) -> None:
    done = await harness.run(
        flows.CommitterInDoubt,
        activities=[flows.open_account, flows.confirm, flows.close_account],
    )
    assert isinstance(done.error, ActivityError)
    assert done.world == ["open:x", "confirm:x", "close:x"]
    assert doubts(done) == [("confirm", "raised", "committer")]
    assert done.verdicts == [("open_account", "undone")]


async def test_u8_an_undo_knows_the_key_that_its_action_used(harness: Harness) -> None:
    """The same over the action's retries and the undo's, and where there never was a result."""
    done = await harness.run(flows.Keyed, activities=[flows.keyed, flows.undo_keyed])
    found = flows.KEYS[done.workflow_id]
    assert [what for what, _ in found] == [
        *["known"] * 2,
        *["unknown"] * 2,
        *["undo of unknown"] * 2,
        *["undo of known"] * 2,
    ]
    known = {key for what, key in found if what in ("known", "undo of known")}
    unknown = {key for what, key in found if what in ("unknown", "undo of unknown")}
    assert len(known) == len(unknown) == 1
    assert known != unknown


async def test_a_result_that_cannot_be_decoded_undoes_nothing_until_a_deploy_cures_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = UnsandboxedWorkflowRunner()
    monkeypatch.setitem(flows.DEPLOYED, "parcel", int)
    async with harness.worker([flows.CannotDecode], workflow_runner=runner) as queue:
        handle = await harness.start(
            queue, flows.CannotDecode.run, task_timeout=timedelta(seconds=1)
        )
        await until_event(handle, "WorkflowTaskFailed")
        assert WORLD.of(handle.id) == ["charge:before", "charge:parcel"]
    monkeypatch.undo()
    async with harness.worker([flows.CannotDecode], workflow_runner=runner, queue=queue):
        done = await harness.finish(handle)
    assert (done.status, done.result) == ("COMPLETED", "Receipt")
    assert done.world == ["charge:before", "charge:parcel"]
