"""Histories that no run can have left: each is an error that names the event."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agboss_temporal import history
from agboss_temporal.history import HistoryError
from agboss_temporal.history.files import parse

HISTORIES = Path(__file__).parents[1] / "replay" / "histories"
Events = list[dict[str, Any]]


def recorded(name: str) -> Events:
    found: Events = json.loads((HISTORIES / f"{name}.json").read_text())["events"]
    return found


async def read(events: Events) -> None:
    await history.ledger(parse(json.dumps({"events": events}).encode()))


def numbered(events: Events) -> Events:
    return [{**event, "eventId": str(number)} for number, event in enumerate(events, 1)]


def about(event: dict[str, Any]) -> dict[str, Any]:
    [found] = [value for name, value in event.items() if name.endswith("Attributes")]
    assert isinstance(found, dict)
    return found


def header(events: Events, number: int, fields: Any) -> Events:
    """Give the call at an event another header."""
    data = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    held = about(events[number - 1])["header"]["fields"]["agboss-compensation"]
    held["data"] = base64.b64encode(data).decode()
    return events


def cut(name: str, number: int) -> Events:
    return recorded(name)[:number]


def without(name: str, number: int) -> Events:
    """Leave out an event, and renumber the others but not what refers to them."""
    events = recorded(name)
    del events[number - 1]
    return numbered(events)


def again(name: str, number: int) -> Events:
    events = recorded(name)
    return numbered([*events[:number], events[number - 1]])


def replaced(events: Events, number: int, change: Callable[[dict[str, Any]], None]) -> Events:
    change(about(events[number - 1]))
    return events


# In "failed": 5 reserve scheduled, 6 started, 7 completed; 11 to 13 charge; 17 to 19 explode;
# 25 to 27 refund; 31 to 33 release; 37 the end.
_HEADER = about(recorded("failed")[4])["header"]["fields"]["agboss-compensation"]["data"]
FIRST = json.loads(base64.b64decode(_HEADER))["a"]


@pytest.mark.parametrize(
    ("events", "event_id", "problem"),
    [
        ([], 0, "no events"),
        (recorded("failed")[1:], 0, "does not begin with the start"),
        ([*cut("failed", 3), *recorded("failed")[4:]], 5, "event 4 should stand here"),
        (again("failed", 1), 2, "the run starts again"),
        (again("failed", 37), 38, "it comes after the run was closed"),
        (without("failed", 5), 5, "it starts what was never scheduled"),
        (without("failed", 6), 6, "it settles what was never"),
        (again("failed", 6), 7, r"it starts what was started \(event 5\)"),
        (again("failed", 7), 8, r"it settles what has settled already \(event 5\)"),
        (again("failed", 5), 6, f"there is an action with key {FIRST} already"),
        (without("failed", 3), 3, "completes a workflow task that was not started"),
        (
            replaced(recorded("finished-child"), 7, lambda a: a.update(scheduledEventId="99")),
            7,
            "never scheduled",
        ),
        (header(recorded("failed"), 5, {"v": 2, "a": "x"}), 5, "version 2; this code reads 1"),
        (header(recorded("failed"), 5, b"{"), 5, "not JSON"),
        (header(recorded("failed"), 5, ["a"]), 5, "not a JSON object"),
        (header(recorded("failed"), 5, {"a": 7}), 5, "a field of another type"),
        (header(recorded("failed"), 5, {"a": ""}), 5, "names no key"),
        (header(recorded("failed"), 5, {"u": "refund"}), 5, "names no key"),
        (header(recorded("failed"), 5, {"a": "x"}), 5, "an action without an undo"),
        (header(recorded("failed"), 5, {"a": "x", "u": "u", "S": "1"}), 5, "another type"),
        (header(recorded("failed"), 5, {"a": "x", "u": "u", "N": 1}), 5, "another type"),
        (header(recorded("failed"), 5, {"a": "x", "u": "u", "M": [3]}), 5, "another type"),
        (header(recorded("failed"), 5, {"a": "x", "u": "u", "S": 1e300}), 5, "no time"),
        (header(recorded("failed"), 5, {"a": "x", "u": "u", "p": "1."}), 5, "unit path"),
        (header(recorded("failed"), 5, {"a": "x", "d": 1, "w": 1}), 5, "and is that of a hand-ov"),
        (header(recorded("failed"), 5, {"d": 1, "w": 1}), 5, "is no agboss.recovery"),
    ],
)
async def test_what_cannot_be_is_an_error(events: Events, event_id: int, problem: str) -> None:
    with pytest.raises(HistoryError, match=problem) as caught:
        await read(events)
    assert caught.value.event_id == event_id


async def test_an_undo_before_its_action_is_an_error() -> None:
    """Scheduled while the action runs, before it was started, and as part of no unwind."""
    [undo] = header(recorded("failed"), 31, {"z": FIRST, "w": 1})[30:31]
    with pytest.raises(HistoryError, match=f"release undoes {FIRST}, which is running"):
        await read(numbered([*cut("failed", 6), undo]))
    with pytest.raises(HistoryError, match=f"release undoes {FIRST}, which was never started"):
        await read(numbered([*cut("failed", 4), undo]))
    with pytest.raises(HistoryError, match="belongs to an unwind, and its record names none"):
        await read(header(recorded("failed"), 31, {"z": FIRST, "w": 0}))


async def test_an_undo_of_what_is_undone_is_an_error() -> None:
    events = cut("failed", 33)
    with pytest.raises(HistoryError, match=f"release undoes {FIRST}, which is undone"):
        await read(numbered([*events, events[30]]))


async def test_an_undo_for_another_workflow_is_an_error() -> None:
    forged = header(recorded("failed"), 31, {"z": FIRST, "w": 1, "o": "elsewhere"})
    with pytest.raises(HistoryError, match="for another workflow, and this is no recovery"):
        await read(forged)


async def test_a_child_undoes_nothing_and_settles_no_activity() -> None:
    """In "finished-child": 11 BookTrip initiated, 12 started; 20 charge scheduled."""
    forged = header(recorded("finished-child"), 11, {"z": FIRST, "w": 1})
    with pytest.raises(HistoryError, match="BookTrip is an undo and no activity"):
        await read(forged)
    [late] = replaced(
        recorded("finished-child")[11:12], 1, lambda a: a.update(initiatedEventId="20")
    )
    with pytest.raises(HistoryError, match=r"starts what is no workflow \(event 20\)"):
        await read(numbered([*cut("finished-child", 20), late]))


async def test_what_an_unwind_keeps_is_not_sealed_by_the_finish_in_the_same_task() -> None:
    """The reservation is irreversible; the run goes on after its undo, and returns."""
    events = header(cut("failed", 31), 5, {"a": FIRST, "R": 1})
    charge = json.loads(
        base64.b64decode(about(events[10])["header"]["fields"]["agboss-compensation"]["data"])
    )["a"]
    header(events, 25, {"z": charge, "w": 1, "t": "explicit", "k": [FIRST]})
    events[30] = {
        "eventId": "31",
        "eventTime": events[30]["eventTime"],
        "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED",
        "workflowExecutionCompletedEventAttributes": {},
    }
    ledger = await history.ledger(parse(json.dumps({"events": events}).encode()))
    assert [str(entry.state) for entry in ledger] == ["irreversible", "undone"]
    assert [(e.key, e.verdict) for e in ledger.report.entries] == [
        (charge, "undone"),
        (FIRST, "irreversible"),
    ]
