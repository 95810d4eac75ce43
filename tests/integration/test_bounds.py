"""What bounds an unwind, and what is said of undos that give up (rules E3 to E5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import pytest
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from agboss_temporal import CompensationReport
from tests.integration import bounds_flows as flows
from tests.integration.codec import CONVERTERS, with_shelf
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Done, Handle, Harness, scheduled, until_event

EVERYTHING = [*ACTIVITIES, *flows.GIVING_UP, *flows.LARGE]
LIMIT = 2 * 1024 * 1024
MAX_DETAILS = 32 * 1024


@pytest.fixture(autouse=True)
def _broken() -> Iterator[None]:
    """Undos of items of this name fail at once and for good."""
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")


def undos(done: Done) -> list[str]:
    return [effect for effect in done.world if not effect.startswith(("charge:", "reserve:"))]


def failure_of(done: Done) -> ApplicationError:
    assert done.status == "FAILED"
    error = done.error
    assert isinstance(error, ApplicationError)
    assert error.type == "CompensationFailedError"
    assert error.non_retryable
    return error


def reasons(done: Done) -> list[tuple[str, str | None, str | None]]:
    return [(e.action, e.verdict, e.reason) for e in done.report.entries]


def took(done: Done, entry: int) -> timedelta:
    found = done.report.entries[entry]
    assert found.started_at is not None
    assert found.ended_at is not None
    return found.ended_at - found.started_at


# -- E3, E4: bounds


async def test_f8_an_undo_is_attempted_as_often_as_its_contract_says(skipping: Harness) -> None:
    done = await skipping.run(flows.GivesUp, ["thrice"], activities=EVERYTHING)
    assert undos(done) == ["refund:after", *["try:thrice"] * 3, "refund:before"]
    assert reasons(done) == [
        ("charge", "undone", None),
        ("thrice", "failed", "StillDown"),
        ("charge", "undone", None),
    ]
    error = failure_of(done)
    assert done.report.status == "partial"
    assert error.message == ("compensation partial: 2 of 3 undone, left behind: thrice (failed)")
    assert isinstance(error.cause, ActivityError)
    assert CompensationReport.from_error(error) == done.report


async def test_e3_by_default_an_undo_is_given_up_after_an_hour(skipping: Harness) -> None:
    done = await skipping.run(flows.GivesUp, ["for_ever"], activities=EVERYTHING)
    tries = undos(done).count("try:for_ever")
    assert 60 <= tries <= 70
    assert undos(done)[0] == "refund:after"
    assert undos(done)[-1] == "refund:before"
    assert done.verdicts == [("charge", "undone"), ("for_ever", "failed"), ("charge", "undone")]
    assert done.report.entries[1].reason == "StillDown"
    assert timedelta(minutes=58) <= took(done, 1) <= timedelta(minutes=61)
    failure_of(done)


async def test_e3_an_undo_without_a_worker_is_given_up_after_its_schedule_to_close(
    harness: Harness,
) -> None:
    done = await harness.run(flows.GivesUp, ["unreachable"], activities=EVERYTHING)
    assert undos(done) == ["refund:after", "refund:before"]
    # The server bounds the wait for a worker by the schedule-to-close timeout as well.
    assert reasons(done)[1] == ("unreachable", "failed", "schedule-to-start timeout")
    assert timedelta(seconds=1) <= took(done, 1) <= timedelta(seconds=10)


async def test_f10_a_total_timeout_leaves_each_undo_what_is_left_of_it(skipping: Harness) -> None:
    """Undos that keep failing: each is given up when its next attempt would come too late."""
    done = await skipping.run(flows.Bounded, ["for_ever"] * 3, activities=EVERYTHING)
    assert done.verdicts == [
        ("charge", "undone"),
        *[("for_ever", "failed")] * 3,
        ("charge", "undone"),
    ]
    assert undos(done)[0] == "refund:after"
    assert undos(done)[-1] == "refund:before"
    times = [took(done, n) for n in (1, 2, 3)]
    assert times == sorted(times, reverse=True)
    assert times[0] >= timedelta(seconds=30)
    failure_of(done)
    assert "TimerStarted" not in done.events
    assert _since_the_unwind_began(done) <= timedelta(seconds=60)


@pytest.mark.parametrize("called", ["without_end", "unreachable"])
async def test_f10_what_runs_when_the_total_timeout_ends_is_failed_and_the_rest_not_run(
    harness: Harness, called: str
) -> None:
    forward = ["thrice", *[called] * 2, "without_end", "shred"]
    done = await harness.run(flows.Hurried, forward, activities=EVERYTHING)
    assert undos(done) == ["shred:shred", "refund:after", "try:without_end"]
    assert reasons(done) == [
        ("charge", "undone", None),
        ("shred", "irreversible", None),
        ("without_end", "failed", reasons(done)[2][2]),
        *[(called, "not_run", "total_timeout")] * 2,
        ("thrice", "not_run", "total_timeout"),
        ("charge", "not_run", "total_timeout"),
    ]
    assert str(reasons(done)[2][2]).endswith("-to-close timeout")
    assert done.report.status == "partial"
    failure_of(done)
    assert "TimerStarted" not in done.events
    assert "WorkflowTaskFailed" not in done.events
    assert _since_the_unwind_began(done) <= timedelta(seconds=7)


def _since_the_unwind_began(done: Done) -> timedelta:
    began: datetime | None = done.report.unwinds[0].started_at
    assert began is not None
    closed = done.history.events[-1].event_time.ToDatetime(began.tzinfo)
    return closed - began


async def test_e4_an_undo_that_gives_up_can_stop_the_rest(skipping: Harness) -> None:
    done = await skipping.run(flows.Stops, ["for_ever", "shred", "thrice"], activities=EVERYTHING)
    assert undos(done) == ["shred:shred", "refund:after", *["try:thrice"] * 3]
    assert done.verdicts == [
        ("charge", "undone"),
        ("thrice", "failed"),
        ("shred", "irreversible"),
        ("for_ever", "not_run"),
        ("charge", "not_run"),
    ]
    assert done.report.status == "partial"
    failure_of(done)


# -- F15: every trigger with every outcome

ITEMS: Mapping[str, tuple[list[str], str]] = {
    "nothing": ([], "none"),
    "all undone": (["a", "b"], "completed"),
    "some failed": (["a", "broken", "b"], "partial"),
    "all failed": (["broken", "broken"], "failed"),
    "irreversible only": (["irreversible"], "none"),
    "irreversible beside": (["a", "irreversible"], "partial"),
    "irreversible and failed": (["irreversible", "broken"], "failed"),
    "stopped": (["a", "broken"], "failed"),
    "stopped late": (["a", "broken", "b"], "partial"),
}
"""What a run does, and the status that its unwind then has."""

TRIGGERS: Mapping[str, tuple[str, str, str]] = {
    "activity": ("FAILED", "ActivityError", "node-failure"),
    "error": ("FAILED", "Declined", "node-failure"),
    "limit": ("FAILED", "LimitExceededError", "cap-breach"),
    "timeout": ("FAILED", "TimeoutError", "cap-breach"),
    "cancel": ("CANCELED", "CancelledError", "run-cancel"),
    "uncommitted": ("FAILED", "UncommittedActionError", "node-failure"),
}
"""How a run ends, and how it closes if everything is undone."""


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_f15_every_trigger_with_every_outcome(harness: Harness, trigger: str) -> None:
    cases = {
        name: items
        for name, items in ITEMS.items()
        if trigger != "uncommitted" or not name.startswith(("irreversible", "nothing"))
    }
    both = [flows.Table, flows.StopTable]
    async with harness.worker(both, EVERYTHING) as queue:
        handles: dict[str, Handle] = {}
        for name, (items, _) in cases.items():
            flow = flows.StopTable if name.startswith("stopped") else flows.Table
            handles[name] = await harness.start(queue, flow.run, trigger, items)
        if trigger == "cancel":
            for handle in handles.values():
                await until_event(handle, "TimerStarted")
                await handle.cancel()
        dones = await asyncio.gather(*(harness.finish(h) for h in handles.values()))
    for name, done in zip(cases, dones, strict=True):
        _check(trigger, name, done)


def _check(trigger: str, name: str, done: Done) -> None:
    items, status = ITEMS[name]
    close, error, reported = TRIGGERS[trigger]
    planned = status != "none"
    left = "failed" in name or "stopped" in name
    assert (name, done.report.status) == (name, status)
    assert (name, done.report.trigger) == (name, reported if planned else None)
    assert ("MarkerRecorded" in done.events) == planned
    assert len(done.report.entries) == (len(items) if planned else 0)
    assert (name, done.status) == (name, "FAILED" if left else close)
    if not left:
        assert (name, _type(done.error)) == (name, error)
        return
    failure = failure_of(done)
    assert (name, _type(failure.cause)) == (name, error)
    report = CompensationReport.from_error(failure)
    assert report is not None
    assert (report.status, report.trigger) == (status, reported)
    assert sum(report.counts.values()) == len(items)
    assert report.entries == done.report.entries


def _type(error: BaseException | None) -> str:
    if isinstance(error, ApplicationError):
        return str(error.type)
    assert isinstance(error, (ActivityError, CancelledError))
    return type(error).__name__


# -- irreversible actions


async def test_an_irreversible_action_runs_nothing_and_caps_the_status(harness: Harness) -> None:
    done = await harness.run(flows.GivesUp, ["shred"], activities=EVERYTHING)
    assert isinstance(done.error, ActivityError)
    assert undos(done) == ["shred:shred", "refund:after", "refund:before"]
    assert done.verdicts == [("charge", "undone"), ("shred", "irreversible"), ("charge", "undone")]
    assert done.report.status == "partial"
    assert scheduled(done.history.events).count("shred") == 1


# -- K3: inputs that are too large


@pytest.mark.parametrize(
    ("given", "returned"), [(1_600_000, 1), (1, 1_600_000), (800_000, 800_000)]
)
async def test_k3_a_context_over_the_limit_fails_its_own_undo_only(
    harness: Harness, caplog: pytest.LogCaptureFixture, given: int, returned: int
) -> None:
    done = await harness.run(flows.Large, "large", given, returned, activities=EVERYTHING)
    assert undos(done) == ["refund:after", "refund:before"]
    assert done.verdicts == [("charge", "undone"), ("large", "failed"), ("charge", "undone")]
    reason = done.report.entries[1].reason
    assert reason is not None
    words = reason.split()
    assert reason == f"its input of {words[3]} bytes is over the limit of {LIMIT}"
    assert LIMIT < int(words[3]) < LIMIT * 1.1
    failure_of(done)
    assert "WorkflowTaskFailed" not in done.events
    told = [r for r in caplog.records if "over the limit" in r.getMessage()]
    [warning] = [r for r in told if r.levelname == "WARNING"]
    assert "the context of undo undo_large of large" in warning.getMessage()


async def test_k3_a_context_just_below_the_limit_is_given(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    done = await harness.run(flows.Large, "large", 1_500_000, 70_000, activities=EVERYTHING)
    assert undos(done) == ["refund:after", "undo large:1500000+70000", "refund:before"]
    assert done.report.status == "completed"
    assert "over the limit" not in caplog.text


async def test_k3_a_result_that_passed_once_is_never_too_large(harness: Harness) -> None:
    done = await harness.run(flows.Large, "large_result", 1, LIMIT - 1000, activities=EVERYTHING)
    assert undos(done) == ["refund:after", f"undo large result:{LIMIT - 1000}", "refund:before"]


@pytest.mark.parametrize(
    ("called", "returned", "undo"),
    [
        ("large_result", 1_520_000, ["undo large result:1520000"]),
        ("large", 1_080_000, ["undo large:1+1080000"]),
        ("large", 1_200_000, []),
    ],
)
async def test_k3_a_codec_needs_room(
    harness: Harness, called: str, returned: int, undo: list[str]
) -> None:
    converter = CONVERTERS["default-encrypted"]
    own = Harness(harness.plain, cache=harness.cache, data_converter=converter)
    done = await own.run(flows.Large, called, 1, returned, activities=EVERYTHING)
    assert undos(done) == ["refund:after", *undo, "refund:before"]
    assert done.report.status == ("completed" if undo else "partial")
    assert "WorkflowTaskFailed" not in done.events
    await own.replay_all()


@pytest.mark.parametrize(
    ("called", "undo"),
    [("large", "undo large:1+3000000"), ("large_result", "undo large result:3000000")],
)
async def test_k3_nothing_is_too_large_for_external_storage(
    harness: Harness, called: str, undo: str, caplog: pytest.LogCaptureFixture
) -> None:
    own = Harness(harness.plain, cache=harness.cache, data_converter=with_shelf())
    done = await own.run(flows.Large, called, 1, 3_000_000, activities=EVERYTHING)
    assert undos(done) == ["refund:after", undo, "refund:before"]
    assert "over the limit" not in caplog.text
    await own.replay_all()


# -- E5: the error's details stay small


def details_size(done: Done) -> int:
    failure = done.history.events[-1].workflow_execution_failed_event_attributes.failure
    [payload] = failure.application_failure_info.details.payloads
    assert json.loads(payload.data)["version"] == 1
    return len(payload.data)


async def check_many(harness: Harness, count: int) -> CompensationReport:
    done = await harness.run(flows.Many, count, activities=EVERYTHING)
    error = failure_of(done)
    assert len(error.message) < 1000
    assert details_size(done) <= MAX_DETAILS
    report = CompensationReport.from_error(error)
    assert report is not None
    assert (report.status, report.counts) == ("failed", {"failed": count})
    assert len(report.entries) + report.omitted == count
    assert {e.verdict for e in report.entries} == {"failed"}
    assert len(done.report.entries) == count
    return report


async def test_e5_forty_failed_undos_fit_into_the_details(harness: Harness) -> None:
    report = await check_many(harness, 40)
    assert report.omitted == 0


@pytest.mark.slow
@pytest.mark.parametrize("harness", [1000], ids=["cached"], indirect=True)
async def test_e5_three_hundred_failed_undos_are_counted(harness: Harness) -> None:
    report = await check_many(harness, 300)
    assert report.omitted > 0
    assert len(report.entries) > 50
