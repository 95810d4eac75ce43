"""``order="causal"``: what overlapped in time is undone together, all else newest first (E2)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.exceptions import ActivityError

from tests.integration import causal_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Done, Handle, Harness, events_of, until, until_did, until_event

EVERYTHING = [*ACTIVITIES, *flows.ACTS]
UNDOS = ("refund", "undo_doubtful")


@pytest.fixture(autouse=True)
def _world() -> Iterator[None]:
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")
    WORLD.gates.clear()


def undos(events: list[HistoryEvent]) -> list[str]:
    """Say in which order undos were scheduled (``+``) and ended (``-``)."""
    items: dict[int, str] = {}
    found = []
    for event in events:
        begun = event.activity_task_scheduled_event_attributes
        if begun.activity_type.name in UNDOS:
            given = json.loads(begun.input.payloads[0].data)
            items[event.event_id] = given if isinstance(given, str) else given["item"]
            found.append(f"+{items[event.event_id]}")
        completed = event.activity_task_completed_event_attributes.scheduled_event_id
        failed = event.activity_task_failed_event_attributes.scheduled_event_id
        if (completed or failed) in items:
            found.append(f"-{items[completed or failed]}")
    return found


def at_once(found: list[str]) -> int:
    most = running = 0
    for each in found:
        running += 1 if each.startswith("+") else -1
        most = max(most, running)
    return most


def waves(found: list[str]) -> list[set[str]]:
    """Group what was undone: each group was scheduled whole before any of it ended."""
    groups: list[set[str]] = []
    while found:
        size = next(n for n, each in enumerate(found) if each.startswith("-"))
        begun, ended = set(found[:size]), set(found[size : 2 * size])
        assert {each[1:] for each in begun} == {each[1:] for each in ended}, found
        groups.append({each[1:] for each in begun})
        found = found[2 * size :]
    return groups


async def check(harness: Harness, shape: flows.Shape, expected: list[set[str]]) -> Done:
    done = await harness.run(flows.Causal, shape, activities=EVERYTHING)
    assert waves(undos(list(done.history.events))) == expected
    assert isinstance(done.error, ActivityError)
    assert len(done.report.entries) == sum(map(len, shape))
    return done


async def test_e2_sequential_code_is_undone_newest_first(harness: Harness) -> None:
    done = await check(harness, [["a"], ["b"], ["c"]], [{"c"}, {"b"}, {"a"}])
    assert done.world[-3:] == ["refund:c", "refund:b", "refund:a"]
    assert done.verdicts == [("charge", "undone")] * 3
    assert done.report.status == "completed"


async def test_e2_a_fan_out_is_undone_at_once(harness: Harness) -> None:
    await check(harness, [["a", "b", "c", "d"]], [{"a", "b", "c", "d"}])


async def test_e2_n6_mixed_shapes_keep_every_real_order(harness: Harness) -> None:
    await check(harness, [["a"], ["b", "c"], ["d"]], [{"d"}, {"b", "c"}, {"a"}])
    await check(harness, [["a", "b"], ["c", "d", "e"], ["f"]], [{"f"}, {"c", "d", "e"}, {"a", "b"}])


async def test_e2_what_is_in_doubt_takes_part_in_the_order(harness: Harness) -> None:
    await check(harness, [["a", "doubtful-b"], ["c"]], [{"c"}, {"a", "doubtful-b"}])


async def test_e2_what_is_irreversible_takes_part_in_the_order(harness: Harness) -> None:
    done = await check(harness, [["a"], ["shred-b", "c"], ["d"]], [{"d"}, {"c"}, {"a"}])
    assert sorted(str(v) for _, v in done.verdicts) == ["irreversible"] + ["undone"] * 3
    assert done.report.status == "partial"
    assert done.world.count("shred:shred-b") == 1


async def test_no_more_than_max_parallel_run_at_once(harness: Harness) -> None:
    items = [f"i{n}" for n in range(7)]
    done = await harness.run(flows.Narrow, [items], activities=EVERYTHING)
    found = undos(list(done.history.events))
    assert at_once(found) == 2
    assert sorted(found) == sorted([f"+{i}" for i in items] + [f"-{i}" for i in items])
    assert [e.verdict for e in done.report.entries] == ["undone"] * 7


async def test_the_report_lists_the_plan_newest_completed_first(harness: Harness) -> None:
    items = [f"i{n}" for n in range(5)]
    done = await harness.run(flows.Narrow, [["first"], items, ["last"]], activities=EVERYTHING)
    completed = [
        e.activity_task_completed_event_attributes.scheduled_event_id
        for e in done.history.events
        if e.HasField("activity_task_completed_event_attributes")
    ]
    charged = [n for n in completed if _name(done, n) == "charge"]
    keys = [_key(done, n) for n in reversed(charged)]
    assert [e.key for e in done.report.entries] == keys


def _name(done: Done, event_id: int) -> str:
    event = done.history.events[event_id - 1]
    return event.activity_task_scheduled_event_attributes.activity_type.name


def _key(done: Done, event_id: int) -> str:
    header = done.history.events[event_id - 1].activity_task_scheduled_event_attributes.header
    key: str = json.loads(header.fields["agboss-compensation"].data)["a"]
    return key


async def test_e4_one_undo_gives_up_and_the_rest_goes_on(harness: Harness) -> None:
    shape = [["a"], ["b", "broken", "c"], ["d"]]
    done = await harness.run(flows.Causal, shape, activities=EVERYTHING)
    assert waves(undos(list(done.history.events))) == [{"d"}, {"b", "broken", "c"}, {"a"}]
    assert sorted(str(v) for _, v in done.verdicts) == ["failed"] + ["undone"] * 4
    [failed] = [e for e in done.report.entries if e.verdict == "failed"]
    assert failed.reason == "RefundBroken"
    assert done.report.status == "partial"
    assert "2 more" not in str(done.error)


async def test_e4_stop_lets_what_is_in_flight_end_and_starts_no_more(harness: Harness) -> None:
    slow = f"slow-{harness.cache}"
    gate = WORLD.gate(f"refund:{slow}")

    async def release(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskFailed", 2)
        gate.set()

    done = await harness.run(
        flows.Stops, [["a", "b"], [slow, "broken"]], activities=EVERYTHING, meanwhile=release
    )
    assert waves(undos(list(done.history.events))) == [{slow, "broken"}]
    by_verdict = sorted((e.verdict, e.reason) for e in done.report.entries)
    assert by_verdict == [
        ("failed", "RefundBroken"),
        ("not_run", "an undo before it gave up"),
        ("not_run", "an undo before it gave up"),
        ("undone", None),
    ]
    assert f"refund:{slow}" in done.world


async def test_e3_the_total_timeout_shrinks_every_undo(skipping: Harness) -> None:
    """Undos that wait for a gate that nobody opens end with the whole unwind's time."""
    stuck = [f"stuck-{n}-{skipping.cache}" for n in range(2)]
    for item in stuck:
        WORLD.gate(f"refund:{item}")
    done = await skipping.run(flows.Hurried, [["a"], stuck], activities=EVERYTHING)
    assert sorted(str(v) for _, v in done.verdicts) == ["failed", "failed", "not_run"]
    assert done.report.entries[-1].reason == "total_timeout"
    assert "TimerStarted" not in done.events


async def test_e6_a_cancel_in_the_middle_changes_nothing(harness: Harness) -> None:
    held = [f"held-{n}-{harness.cache}" for n in range(3)]
    gates = [WORLD.gate(f"refund:{item}") for item in held]

    async def cancel(handle: Handle) -> None:
        for item in held:
            await until_did(handle, f"at:refund:{item}")
        await handle.cancel()
        await until_event(handle, "WorkflowExecutionCancelRequested")
        for gate in gates:
            gate.set()

    done = await harness.run(flows.Causal, [["a"], held], activities=EVERYTHING, meanwhile=cancel)
    assert done.status == "FAILED"
    assert isinstance(done.error, ActivityError)
    assert waves(undos(list(done.history.events))) == [set(held), {"a"}]
    effects = [e for e in done.world if e.startswith("refund:")]
    assert sorted(effects) == sorted(f"refund:{item}" for item in [*held, "a"])
    assert "ActivityTaskCancelRequested" not in done.events


async def test_a_cancelled_run_is_undone_with_overlap(harness: Harness) -> None:
    async def cancel(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCompleted", 4)
        await handle.cancel()

    done = await harness.run(
        flows.Waits, [["a"], ["b", "c", "d"]], activities=EVERYTHING, meanwhile=cancel
    )
    assert done.status == "CANCELED"
    assert waves(undos(list(done.history.events))) == [{"b", "c", "d"}, {"a"}]


async def test_h5_a_fan_out_that_was_carried_is_undone_at_once(harness: Harness) -> None:
    shape = [["a"], ["b", "c", "d"], ["e"], ["f", "g"]]
    async with harness.worker([flows.Carries], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Carries.run, shape)
        latest = harness.client.get_workflow_handle(handle.id)
        done = await harness.finish(latest)
        harness._runs.append((latest, [flows.Carries]))
    assert waves(undos(list(done.history.events))) == [
        {"f", "g"},
        {"e"},
        {"b", "c", "d"},
        {"a"},
    ]
    assert done.report.status == "completed"


async def test_e7_a_worker_that_dies_in_the_middle_starts_no_undo_twice(
    harness: Harness,
) -> None:
    held = [f"late-{n}-{harness.cache}" for n in range(2)]
    for item in held:
        WORLD.gate(f"refund:{item}")
    async with harness.worker([flows.Causal], EVERYTHING) as queue:
        handle = await harness.start(queue, flows.Causal.run, [["a"], [*held, "b", "c"]])

        async def two_undone() -> bool:
            return len([e for e in undos(await events_of(handle)) if e.startswith("-")]) == 2

        await until(two_undone)
        for item in held:
            WORLD.gate(f"refund:{item}").set()
    async with harness.worker([flows.Causal], EVERYTHING, queue=queue):
        done = await harness.finish(handle)
    found = undos(list(done.history.events))
    assert sorted(e for e in found if e.startswith("+")) == sorted(
        f"+{item}" for item in [*held, "a", "b", "c"]
    )
    assert found[-2:] == ["+a", "-a"]
