"""What an undo is given: the payload as it was recorded, in the form that was declared."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes, HistoryEvent
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensationReport
from agboss_temporal.core import wire
from agboss_temporal.undo_context import UndoReason
from tests.integration import undo_input_form_flows as forms
from tests.integration import undo_input_result_flows as results
from tests.integration import undo_option_flows as options
from tests.integration import undo_shown_flows as shown
from tests.integration.codec import CONVERTERS, decoded
from tests.integration.undo_input_seen import SEEN, Narrow, Order
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Done, Harness, records

WANTED: dict[str, Any] = {
    "unknown_fields": {"a": 1, "new_field": {"deep": [1, 2]}},
    "narrow": Narrow(1),
    "decimal": Decimal("1.10"),
    "uuid": UUID(int=7),
    "bytes": b"\x00\xff\x80",
    "none": None,
    "int": 2**60 + 1,
    "message": WorkflowExecution(workflow_id="w", run_id="r"),
    "basket": results.Basket(["original"]),
    "numbers": {"price": 1.1, "big": 100.0, "accent": "é", "one": 1},
}

RETURNED = {
    "account": "Account",
    "unknown_fields": "Narrow",
    "narrow": "Narrow",
    "decimal": "Decimal",
    "uuid": "UUID",
    "bytes": "bytes",
    "none": "NoneType",
    "int": "int",
    "message": "WorkflowExecution",
    "basket": "Basket",
    "numbers": "dict",
}

NEEDS_PYDANTIC = {"account", "decimal"}


@pytest.fixture(params=CONVERTERS)
async def converted(harness: Harness, request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    """A harness under each of the data converters."""
    own = Harness(harness.plain, cache=harness.cache, data_converter=CONVERTERS[request.param])
    yield own
    await own.replay_all()


@pytest.fixture(params=[name for name in CONVERTERS if "encrypted" in name])
async def encrypted(harness: Harness, request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    """A harness under each of the encrypting data converters."""
    own = Harness(harness.plain, cache=harness.cache, data_converter=CONVERTERS[request.param])
    yield own
    await own.replay_all()


def calls(done: Done, name: str) -> list[ActivityTaskScheduledEventAttributes]:
    """List the scheduled events of an activity."""
    return [
        e.activity_task_scheduled_event_attributes
        for e in done.history.events
        if e.activity_task_scheduled_event_attributes.activity_type.name == name
    ]


def event_of(done: Done, name: str) -> HistoryEvent:
    [found] = [
        e
        for e in done.history.events
        if e.activity_task_scheduled_event_attributes.activity_type.name == name
    ]
    return found


async def sent(harness: Harness, done: Done, name: str) -> list[bytes]:
    """Return the arguments that the one call of an activity was scheduled with."""
    [call] = calls(done, name)
    return await decoded(harness.client.data_converter, call.input.payloads)


async def recorded(harness: Harness, done: Done, name: str) -> list[bytes]:
    """Return the result that history holds for the one call of an activity."""
    event_id = event_of(done, name).event_id
    [completed] = [
        e.activity_task_completed_event_attributes
        for e in done.history.events
        if e.activity_task_completed_event_attributes.scheduled_event_id == event_id
    ]
    return await decoded(harness.client.data_converter, completed.result.payloads)


async def run_and_look(
    harness: Harness, workflow: type, arg: str, activities: Sequence[Callable[..., Any]]
) -> tuple[Done, str]:
    """Run a workflow to its end; return also its current details."""
    async with harness.worker([workflow], activities) as queue:
        handle = await harness.start(queue, workflow.run, arg)  # type: ignore[attr-defined]
        done = await harness.finish(handle)
        metadata: WorkflowMetadata = await handle.query(
            "__temporal_workflow_metadata", result_type=WorkflowMetadata
        )
    return done, metadata.current_details


async def summary_of(harness: Harness, event: HistoryEvent) -> str:
    assert event.user_metadata.HasField("summary")
    payload = event.user_metadata.summary
    [text] = await harness.client.data_converter.decode([payload], [str])
    assert isinstance(text, str)
    return text


# -- K4: the recorded payload


@pytest.mark.parametrize("by_name", [False, True], ids=["typed", "by-name"])
async def test_k4_the_recorded_payload_reaches_the_undo(converted: Harness, by_name: bool) -> None:
    """For each kind of result: the same bytes, and the same value once decoded."""
    pydantic = "ydantic" in type(converted.client.data_converter.payload_converter).__name__
    cases = [c for c in results.RESULTS if pydantic or c not in NEEDS_PYDANTIC]
    activities = [*ACTIVITIES, *(fn for pair in results.RESULTS.values() for fn in pair)]
    async with converted.worker([results.Gives], activities) as queue:
        handles = [
            (case, await converted.start(queue, results.Gives.run, case, by_name)) for case in cases
        ]
        for case, handle in handles:
            done = await converted.finish(handle)
            given = await sent(converted, done, f"keep_{case}")
            assert (case, given) == (case, await recorded(converted, done, f"give_{case}"))
            assert done.verdicts == [(f"give_{case}", "undone")]
            [seen] = SEEN[handle.id]
            _assert_as_returned(case, seen)
            if not by_name:
                assert done.world == [f"note:{RETURNED[case]}"]


def _assert_as_returned(case: str, seen: Any) -> None:
    if case == "account":
        assert seen.password.get_secret_value() == "s3cret"
        return
    assert (case, seen) == (case, WANTED[case])
    assert type(seen) is type(WANTED[case])


async def test_k4_the_wire_form_of_another_language_is_kept(converted: Harness) -> None:
    done = await converted.run(
        results.Gives, "numbers", True, activities=[*ACTIVITIES, *results.RESULTS["numbers"]]
    )
    [given] = await sent(converted, done, "keep_numbers")
    assert results.RAW_NUMBERS in given
    assert b"go" in given


# -- K3: the forms of the input


@pytest.mark.parametrize("called", ["do_with_context", "do_in_thread"])
async def test_k3_f13_u7_a_context_says_all_that_is_known(converted: Harness, called: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = await converted.run(
            forms.Takes, called, "private", activities=forms.FORMS, activity_executor=pool
        )
    ctx, args, plain_args, result, plain_result = SEEN[done.workflow_id]
    assert ctx.key == records(done, called)[0].action_key
    assert (ctx.action, ctx.outcome, ctx.has_result) == (called, "completed", True)
    assert ctx.reason == UndoReason("node-failure", "OutOfStock", "out of private")
    assert args == (Order("book", ["private"]), "by post")
    assert plain_args == ({"item": "book", "lines": ["private"]}, "by post")
    assert result == Narrow(5)
    assert plain_result == {"a": 5}
    if called == "do_in_thread":
        assert done.world == ["do in thread", "undo in thread"]
        assert WORLD.keys[done.workflow_id][0][1] != WORLD.keys[done.workflow_id][1][1]


async def test_f13_the_reason_is_what_the_activity_raised(harness: Harness) -> None:
    done = await harness.run(forms.ErrorOfActivity, activities=[*ACTIVITIES, *forms.FORMS[:4]])
    ctx = SEEN[done.workflow_id][0]
    assert ctx.reason == UndoReason("node-failure", "Declined", "it went wrong")


async def test_k3_args_are_those_of_the_call(converted: Harness) -> None:
    done = await converted.run(
        forms.Takes, "do_with_args", "x", activities=[forms.do_with_args, forms.undo_with_args]
    )
    assert await sent(converted, done, "undo_with_args") == await sent(
        converted, done, "do_with_args"
    )
    assert SEEN[done.workflow_id] == [Order("book", ["x"]), "by post"]


@pytest.mark.parametrize("called", ["do_with_nothing", "do_for_no_parameters"])
async def test_k3_nothing_is_given(harness: Harness, called: str) -> None:
    done = await harness.run(
        forms.Takes,
        called,
        "x",
        activities=[
            forms.do_with_nothing,
            forms.do_for_no_parameters,
            forms.undo_with_nothing,
        ],
    )
    assert done.world == ["undo with nothing"]
    assert await sent(harness, done, "undo_with_nothing") == []


async def test_activities_that_are_methods_are_undone_by_methods(harness: Harness) -> None:
    desk = forms.Desk("front")
    done = await harness.run(forms.Books, activities=[*ACTIVITIES, desk.book, desk.cancel])
    assert done.world == ["front: book 7", "front: cancel 7"]
    assert done.verdicts == [("desk-book", "undone")]


# -- E10 and E3: the options of the undo's call

LENDING: list[Callable[..., Any]] = [
    options.give_out,
    options.give_out_elsewhere,
    options.take_back,
    options.take_back_elsewhere,
]


async def test_e10_an_undo_runs_where_its_action_ran_or_where_options_say(
    harness: Harness,
) -> None:
    async with (
        harness.worker((), [*LENDING, *ACTIVITIES]) as acts,
        harness.worker((), [options.take_back_elsewhere], queue=options.ELSEWHERE),
    ):
        done = await harness.run(options.Options, acts, activities=ACTIVITIES)
    assert done.world == [
        f"give out on {acts}",
        f"take back on {options.ELSEWHERE}",
        f"take back on {acts}",
    ]
    [there] = calls(done, "take_back")
    [elsewhere] = calls(done, "take_back_elsewhere")
    assert (there.task_queue.name, there.priority.priority_key) == (acts, 2)
    assert (elsewhere.task_queue.name, elsewhere.priority.priority_key) == (options.ELSEWHERE, 5)


async def test_e3_contract_beats_policy_beats_default(harness: Harness) -> None:
    activities = [*LENDING, *ACTIVITIES]
    async with harness.worker((), [options.take_back_elsewhere], queue=options.ELSEWHERE):
        done = await harness.run(options.Options, None, activities=activities)
    plain = await harness.run(options.Defaults, activities=activities)

    [contract] = calls(done, "take_back_elsewhere")
    [policy] = calls(done, "take_back")
    [default] = calls(plain, "take_back")

    def bounds(call: ActivityTaskScheduledEventAttributes) -> tuple[float, float, float]:
        times = (
            call.start_to_close_timeout,
            call.schedule_to_close_timeout,
            call.heartbeat_timeout,
        )
        first, second, third = (t.ToTimedelta() / timedelta(seconds=1) for t in times)
        return first, second, third

    assert bounds(contract) == (5, 3600, 4)
    assert bounds(policy) == (9, 3600, 4)
    assert bounds(default) == (30, 3600, 0)
    retry = contract.retry_policy
    assert (retry.initial_interval.seconds, retry.maximum_attempts) == (3, 7)
    assert retry.backoff_coefficient == 1.5
    for call in (policy, default):
        retry = call.retry_policy
        assert (retry.initial_interval.seconds, retry.maximum_interval.seconds) == (1, 60)
        assert retry.maximum_attempts == 0


# -- what is shown of it


async def test_undos_are_summed_up_and_name_the_key_that_they_undo(converted: Harness) -> None:
    done = await converted.run(shown.Shown, "")
    undos = [
        e
        for e in done.history.events
        if e.activity_task_scheduled_event_attributes.activity_type.name in ("release", "refund")
    ]
    assert [await summary_of(converted, e) for e in undos] == [
        "undo of charge 1/3",
        "undo of reserve 2/3",
        "undo of reserve 3/3",
    ]
    first, second = (r.action_key for r in records(done, "reserve"))
    assert [r.undoes for r in records(done, "release")] == [second, first]
    assert [r.undoes for r in records(done, "refund")] == [
        r.action_key for r in records(done, "charge")
    ]


async def test_a_summary_has_at_most_200_bytes(harness: Harness) -> None:
    done = await harness.run(
        shown.LongName, activities=[*ACTIVITIES, shown.do_long, shown.undo_long]
    )
    assert done.report.status == "completed"
    summary = await summary_of(harness, event_of(done, "undo_long"))
    assert summary.startswith("undo of höchst-sehr-")
    assert len(summary.encode()) <= 200


async def test_current_details_show_the_report(harness: Harness) -> None:
    _, details = await run_and_look(harness, shown.Shown, "", ACTIVITIES)
    assert details.startswith("**Compensation: completed** (node-failure)")
    assert "| reserve | release | undone |" in details


async def test_current_details_of_the_user_are_left_alone(harness: Harness) -> None:
    done, details = await run_and_look(harness, shown.Shown, "my own words", ACTIVITIES)
    assert done.report.status == "completed"
    assert details == "my own words"


# -- what must not be shown of it

SECRET = "4711-private-4711"
PRIVATE: list[Callable[..., Any]] = [shown.do_private, shown.undo_private]


async def test_d3_errors_headers_logs_and_reports_hold_no_user_data(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    done, details = await run_and_look(harness, shown.Private, SECRET, PRIVATE)
    error = done.error
    assert isinstance(error, ApplicationError)
    assert error.type == "CompensationFailedError"
    assert done.report.status == "partial"
    assert SECRET not in error.message
    assert SECRET not in json.dumps(done.report.to_dict())
    report = CompensationReport.from_error(error)
    assert report is not None
    assert SECRET not in json.dumps(report.to_dict())
    assert [e.reason for e in report.entries] == ["UndoBroken", None]
    for call in [*calls(done, "do_private"), *calls(done, "undo_private")]:
        assert call.header.fields
        assert SECRET.encode() not in call.header.SerializeToString()
    assert "do_private" in details
    assert SECRET not in details
    # The SDK's own log of a raising activity has its traceback, in which the message stands.
    assert not [r for r in caplog.records if SECRET in r.getMessage()]
    ours = [r for r in caplog.records if "agboss" in r.pathname]
    assert not [r for r in ours if r.exc_info]


async def test_d3_with_a_codec_only_names_and_keys_are_clear_text(encrypted: Harness) -> None:
    done = await encrypted.run(shown.Private, SECRET, activities=PRIVATE)
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "CompensationFailedError"
    report = CompensationReport.from_error(done.error)
    assert report is not None
    assert [e.verdict for e in report.entries] == ["failed", "undone"]
    for event in done.history.events:
        clear = event.SerializeToString()
        for text in (SECRET, "undo of", "left behind", '"entries"', "reason", "broken"):
            assert text.encode() not in clear
    told = {
        tuple(sorted(json.loads(call.header.fields[wire.HEADER].data)))
        for call in [*calls(done, "do_private"), *calls(done, "undo_private")]
    }
    assert told == {("I", "a", "u"), ("e", "m", "t", "w", "z"), ("m", "w", "z")}
    undos = [json.loads(c.header.fields[wire.HEADER].data) for c in calls(done, "undo_private")]
    assert {record["m"] for record in undos} == {"do_private"}
    assert all(set(call.header.fields) == {wire.HEADER} for call in calls(done, "undo_private"))
