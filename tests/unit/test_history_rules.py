"""Rules of the fold that few recorded runs show, on histories that are changed a little."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from agboss_temporal import history
from agboss_temporal.history.files import parse
from tests.unit.test_history_strict import FIRST, Events, about, cut, header, numbered

FAILED = {"failure": {"message": "x", "applicationFailureInfo": {"type": "Boom"}}}


async def read(events: Events) -> history.RunLedger:
    return await history.ledger(parse(json.dumps({"events": events}).encode()))


def settled(events: Events, number: int, kind: str, name: str, fields: dict[str, Any]) -> Events:
    """Have the call that an event completes end in another way."""
    event = events[number - 1]
    kept = {n: about(event)[n] for n in ("scheduledEventId", "startedEventId")}
    events[number - 1] = {
        "eventId": event["eventId"],
        "eventTime": event["eventTime"],
        "eventType": f"EVENT_TYPE_ACTIVITY_TASK_{kind}",
        f"activityTask{name}EventAttributes": {**kept, **fields},
    }
    return events


@pytest.mark.parametrize(("option", "doubt"), [({"b": 1}, "abandoned"), ({}, "cancelled")])
async def test_k5_a_cancelled_call_that_was_abandoned_is_in_doubt_as_such(
    option: dict[str, Any], doubt: str
) -> None:
    events = header(cut("failed", 10), 5, {"a": FIRST, "u": "release", **option})
    ledger = await read(settled(events, 7, "CANCELED", "Canceled", {}))
    assert [(str(e.state), e.doubt) for e in ledger] == [("in_doubt", doubt)]


async def test_k5_an_undo_stands_although_the_contract_said_that_nothing_was_done() -> None:
    """The workflow's own contract may have been another one by then, and what it did counts."""
    record = {"a": FIRST, "u": "release", "N": ["Boom"]}
    events = settled(header(cut("failed", 10), 5, record), 7, "FAILED", "Failed", FAILED)
    assert [str(e.state) for e in await read(events)] == ["no_effect"]
    undo = header(cut("failed", 31), 31, {"z": FIRST, "w": 1})[30]
    ledger = await read(numbered([*events, undo]))
    assert [(str(e.state), e.doubt) for e in ledger] == [("undoing", "raised")]


@pytest.mark.parametrize(
    ("seal", "inner", "outer"), [("1", "sealed", "sealed"), ("=1", "open", "sealed")]
)
async def test_u1_a_seal_says_whether_it_covers_what_is_inside(
    seal: str, inner: str, outer: str
) -> None:
    events = header(cut("failed", 16), 5, {"a": FIRST, "u": "release", "p": "1"})
    header(events, 11, {"a": "5eed-2", "u": "refund", "p": "1.2"})
    payload = {
        "metadata": {"encoding": base64.b64encode(b"json/plain").decode()},
        "data": base64.b64encode(json.dumps(seal).encode()).decode(),
    }
    memo = {
        "eventType": "EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED",
        "eventTime": events[0]["eventTime"],
        "workflowPropertiesModifiedEventAttributes": {
            "upsertedMemo": {"fields": {"agboss-sealed": payload}}
        },
    }
    ledger = await read(numbered([*events, memo]))
    assert [str(e.state) for e in ledger] == [outer, inner]
