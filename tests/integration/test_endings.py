"""How a run ends, and what then becomes of its effects (DESIGN's table of endings)."""

from __future__ import annotations

import pytest
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from agboss_temporal import CompensationReport
from tests.integration import endings_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import (
    Handle,
    Harness,
    until_did,
    until_event,
)

FORWARD = ["reserve:a", "charge:b"]
UNDONE = [*FORWARD, "refund:b", "release:a"]


async def cancel_in_timer(handle: Handle) -> None:
    await until_event(handle, "TimerStarted")
    await handle.cancel()


async def test_a_good_run_seals_everything(harness: Harness) -> None:
    done = await harness.run(flows.Ending, "good")
    assert done.status == "COMPLETED"
    assert done.world == [*FORWARD, "ship:a"]
    assert done.report == CompensationReport()
    assert "MarkerRecorded" not in done.events


@pytest.mark.parametrize(
    ("how", "kind", "trigger", "cause"),
    [
        ("activity_error", ActivityError, "node-failure", "Boom"),
        ("application_error", ApplicationError, "node-failure", "Declined"),
        ("limit", ApplicationError, "cap-breach", "LimitExceededError"),
        ("timeout", ApplicationError, "cap-breach", "TimeoutError"),
    ],
)
async def test_a_failure_is_unwound_and_surfaces_unchanged(
    harness: Harness, how: str, kind: type[Exception], trigger: str, cause: str
) -> None:
    done = await harness.run(flows.Ending, how)
    assert done.status == "FAILED"
    assert type(done.error) is kind
    assert done.world == UNDONE
    assert (done.report.status, done.report.trigger, done.report.cause) == (
        "completed",
        trigger,
        cause,
    )
    assert done.verdicts == [("charge", "undone"), ("reserve", "undone")]


@pytest.mark.parametrize("where", ["sleep", "wait"])
async def test_a_cancel_is_unwound_and_the_run_ends_cancelled(harness: Harness, where: str) -> None:
    async def cancel(handle: Handle) -> None:
        await until_did(handle, "charge:b")
        await until_event(handle, "ActivityTaskCompleted", 2)
        await handle.cancel()

    done = await harness.run(flows.Ending, where, meanwhile=cancel)
    assert done.status == "CANCELED"
    assert isinstance(done.error, CancelledError)
    assert done.world == UNDONE
    assert (done.report.trigger, done.report.status) == ("run-cancel", "completed")


async def test_a_failure_that_the_code_handles_undoes_nothing(harness: Harness) -> None:
    done = await harness.run(flows.Ending, "catches")
    assert (done.status, done.world) == ("COMPLETED", [*FORWARD, "ship:a"])


async def test_a_swallowed_cancel_undoes_nothing(harness: Harness) -> None:
    done = await harness.run(flows.Ending, "swallows_cancel", meanwhile=cancel_in_timer)
    assert (done.status, done.world) == ("COMPLETED", [*FORWARD, "ship:a"])


async def test_a_return_without_the_committer_is_undone_and_fails(harness: Harness) -> None:
    done = await harness.run(flows.Ending, "uncommitted")
    assert done.status == "FAILED"
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "UncommittedActionError"
    assert done.error.non_retryable
    assert done.world == [*FORWARD, "release:a"]


async def test_uncommitted_can_be_allowed(harness: Harness) -> None:
    done = await harness.run(flows.Allows)
    assert (done.status, done.world) == ("COMPLETED", ["reserve:a"])


async def test_e3_a_task_group_fails_with_its_first_error(harness: Harness) -> None:
    done = await harness.run(flows.Group, "one")
    assert done.status == "FAILED"
    assert isinstance(done.error, ActivityError)
    assert isinstance(done.error.cause, ApplicationError)
    assert done.error.cause.type == "Earlier"
    effects, undos = set(done.world[:2]), set(done.world[2:])
    assert effects == {"charge:first", "charge:beside"}
    assert undos == {"refund:first", "refund:beside"}
    assert done.world.index("refund:first") == 3


async def test_the_other_failures_of_a_group_are_in_the_report(harness: Harness) -> None:
    done = await harness.run(flows.Group, "two")
    assert isinstance(done.error, ActivityError)
    assert done.report.also_failed == ("Later",)


@pytest.mark.parametrize("how", ["mixed", "unnamed"])
async def test_other_groups_stay_what_temporal_makes_of_them(harness: Harness, how: str) -> None:
    async with harness.worker([flows.Group]) as queue:
        handle = await harness.start(queue, flows.Group.run, how)
        await until_event(handle, "WorkflowTaskFailed")
        assert not any(effect.startswith("refund") for effect in WORLD.of(handle.id))
        await handle.terminate()


async def test_a_bug_undoes_nothing_and_a_deploy_cures_it(harness: Harness) -> None:
    WORLD.broken.add("bug")
    async with harness.worker([flows.Bug], workflow_runner=_unsandboxed()) as queue:
        handle = await harness.start(queue, flows.Bug.run)
        await until_event(handle, "WorkflowTaskFailed")
    WORLD.broken.discard("bug")
    async with harness.worker([flows.Bug], workflow_runner=_unsandboxed(), queue=queue):
        done = await harness.finish(handle)
    assert (done.result, done.world) == ("fixed", ["charge:b"])


async def test_a_plain_exception_that_counts_as_failure_is_unwound(harness: Harness) -> None:
    done = await harness.run(flows.FailsForPlain)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "Unlucky"
    assert done.world == ["charge:b", "refund:b"]


async def test_a_signal_handler_that_fails_is_unwound_too(harness: Harness) -> None:
    async def signal(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCompleted")
        await handle.signal("break_it")

    done = await harness.run(flows.Signalled, "waits", meanwhile=signal)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "SignalFailed"
    assert done.world == ["charge:main", "charge:handler", "refund:handler", "refund:main"]


async def test_a_signal_handler_that_fails_at_once_is_unwound_too(harness: Harness) -> None:
    async def signal(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCompleted")
        await handle.signal("break_at_once")

    done = await harness.run(flows.Signalled, "waits", meanwhile=signal)
    assert done.status == "FAILED"
    assert done.world == ["charge:main", "refund:main"]


async def test_a_signal_that_fails_before_the_run_has_begun(harness: Harness) -> None:
    queue = f"later-{harness.cache}"
    harness._queues[queue] = [flows.Signalled]
    handle = await harness.start(queue, flows.Signalled.run, "waits")
    await handle.signal("break_at_once")
    async with harness.worker([flows.Signalled], queue=queue):
        done = await harness.finish(handle)
    assert done.status == "FAILED"
    assert done.report.status in ("none", "completed")
    assert done.world in ([], ["charge:main", "refund:main"])


async def test_a_return_while_an_action_runs_leaves_it_in_doubt(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    async with harness.worker([flows.StillRunning]) as queue:
        handle = await harness.start(queue, flows.StillRunning.run)
        done = await harness.finish(handle)
        WORLD.gate("still-running").set()
        await until_did(handle, "charge:late")
    WORLD.gate("still-running").clear()
    assert done.result == "returned"
    assert [(d.name, d.kind) for d in done.report.in_doubt] == [("charge", "abandoned")]
    assert "nobody knows whether charge took effect (abandoned)" in caplog.text


async def test_a_trigger_that_is_not_listed_starts_no_unwind(harness: Harness) -> None:
    failed = await harness.run(flows.OnlyCancel, "fail")
    assert (failed.world, failed.report.status) == (["charge:a"], "none")
    cancelled = await harness.run(flows.OnlyCancel, "cancel", meanwhile=cancel_in_timer)
    assert cancelled.world == ["charge:a", "refund:a"]


async def test_opting_out_leaves_the_workflow_alone(harness: Harness) -> None:
    done = await harness.run(flows.OptsOut)
    assert done.status == "FAILED"
    assert done.world == ["charge:a"]
    scheduled = [
        e.activity_task_scheduled_event_attributes
        for e in done.history.events
        if e.HasField("activity_task_scheduled_event_attributes")
    ]
    assert scheduled
    assert not any(attributes.header.fields for attributes in scheduled)


async def test_f18_a_loop_is_undone_as_often_as_it_ran(harness: Harness) -> None:
    done = await harness.run(flows.Loop)
    assert done.world == [f"charge:{n}" for n in range(5)] + [
        f"refund:{n}" for n in reversed(range(5))
    ]


async def test_undos_in_an_except_clause_are_not_repeated(harness: Harness) -> None:
    done = await harness.run(flows.Caught)
    assert done.status == "FAILED"
    assert done.world == UNDONE
    assert done.report.status == "none"


@pytest.fixture
def _broken_release() -> object:
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")


@pytest.mark.usefixtures("_broken_release")
class TestFailingUndo:
    """An undo that gives up: the rest goes on, and nothing is hidden."""

    WORLD = ("reserve:one", "reserve:broken", "charge:three", "refund:three", "release:one")

    async def test_f3_f4_f5_f7_the_rest_is_undone_and_the_error_says_so(
        self, harness: Harness
    ) -> None:
        done = await harness.run(flows.UndoFails, "fail")
        assert done.status == "FAILED"
        assert tuple(done.world) == self.WORLD
        error = done.error
        assert isinstance(error, ApplicationError)
        assert error.type == "CompensationFailedError"
        assert error.non_retryable
        assert "reserve" in error.message
        assert "it went wrong" not in error.message
        assert isinstance(error.cause, ActivityError)
        report = CompensationReport.from_error(error)
        assert report is not None
        assert report == done.report
        assert report.status == "partial"
        assert done.verdicts == [
            ("charge", "undone"),
            ("reserve", "failed"),
            ("reserve", "undone"),
        ]
        assert report.entries[1].reason == "ReleaseBroken"

    async def test_f16_an_undo_that_gives_up_is_logged_once(
        self, harness: Harness, caplog: pytest.LogCaptureFixture
    ) -> None:
        await harness.run(flows.UndoFails, "fail")
        assert caplog.text.count("the undo of reserve gave up: ReleaseBroken") == 1
        assert "cannot release" not in [r.message for r in caplog.records if "gave up" in r.message]

    async def test_f1_a_cancelled_run_with_a_failing_undo_fails(self, harness: Harness) -> None:
        done = await harness.run(flows.UndoFails, "cancel", meanwhile=cancel_in_timer)
        assert done.status == "FAILED"
        assert tuple(done.world) == self.WORLD
        assert isinstance(done.error, ApplicationError)
        assert done.error.type == "CompensationFailedError"
        assert isinstance(done.error.cause, CancelledError)
        assert "WorkflowTaskFailed" not in done.events

    async def test_an_uncommitted_run_with_a_failing_undo_fails(self, harness: Harness) -> None:
        done = await harness.run(flows.UndoFails, "uncommitted")
        assert isinstance(done.error, ApplicationError)
        assert done.error.type == "CompensationFailedError"
        assert isinstance(done.error.cause, ApplicationError)
        assert done.error.cause.type == "UncommittedActionError"


def _unsandboxed() -> object:
    from temporalio.worker import UnsandboxedWorkflowRunner

    return UnsandboxedWorkflowRunner()
