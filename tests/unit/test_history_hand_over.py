"""A part of an unwind in another workflow: what either history says of it (rule E8)."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agboss_temporal import history
from agboss_temporal.core import recovery
from agboss_temporal.core.errors import RecordError
from agboss_temporal.history import HistoryError, RunLedger
from agboss_temporal.history.files import parse

HISTORIES = Path(__file__).parents[1] / "replay" / "histories"
SEED = "b324ccc1b8714156"

_INITIATED = "startChildWorkflowExecutionInitiatedEventAttributes"
_COMPLETED = "childWorkflowExecutionCompletedEventAttributes"


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HISTORIES / f"{name}.json").read_text())
    return found


async def read(found: dict[str, Any]) -> RunLedger:
    return await history.ledger(parse(json.dumps(found).encode()))


def until(found: dict[str, Any], kind: str, count: int = 1) -> dict[str, Any]:
    """Cut a history off behind an event."""
    at = [n for n, e in enumerate(found["events"], 1) if e["eventType"].endswith(kind)]
    return {"events": found["events"][: at[count - 1]]}


def payload_of(found: dict[str, Any], attributes: str) -> dict[str, Any]:
    """Find the first plan, or the first answer."""
    event = next(e for e in found["events"] if attributes in e)
    held = event[attributes].get("input") or event[attributes]["result"]
    payload: dict[str, Any] = held["payloads"][0]
    return payload


def rewritten(payload: dict[str, Any], change: Callable[[Any], Any], version: int = 1) -> None:
    """Change what a plan or an answer says."""
    head, _, body = base64.b64decode(payload["data"]).partition(b"\n")
    about = {**json.loads(head), "v": version}
    body = zlib.compress(json.dumps(change(json.loads(zlib.decompress(body)))).encode())
    payload["data"] = base64.b64encode(json.dumps(about).encode() + b"\n" + body).decode()


def replaced(event: dict[str, Any], kind: str, attributes: dict[str, Any]) -> None:
    """Make an event that settles a child one of another kind."""
    old = event.pop(_COMPLETED)
    kept = {n: old[n] for n in ("initiatedEventId", "workflowExecution", "workflowType")}
    event["eventType"] = f"EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_{kind.upper()}"
    event[f"childWorkflowExecution{kind.title()}EventAttributes"] = {**kept, **attributes}


async def test_e8_the_ledger_of_a_run_has_what_its_children_answered() -> None:
    found = recorded("delegated")
    ledger = await read(found)
    assert not ledger.unreadable
    assert {e.ordinal: str(e.state) for e in ledger} == {
        1: "undone",
        2: "failed",
        3: "undone",
        4: "undone",
        5: "undone",
    }
    children = [c.workflow_id for c in ledger.children]
    assert [c.takes_over for c in ledger.children] == [True] * 3
    assert [e.handed_to for e in ledger] == [children[2], *[children[1]] * 2, *[children[0]] * 2]
    undos = [undo for entry in ledger for undo in entry.undos]
    assert [undo.by for undo in undos] == [e.handed_to for e in ledger]
    assert [undo.outcome for undo in undos] == ["completed", "failed", *["completed"] * 3]
    assert ledger.entries[1].undos[0].reason == "RefundBroken"
    assert [(e.key, e.verdict) for e in ledger.report.entries] == [
        (f"{SEED}-{n}", "failed" if n == 2 else "undone") for n in (5, 4, 3, 2, 1)
    ]
    assert ledger.report.status == "partial"
    assert ledger.to_dict()["entries"][0]["handed_to"] == children[2]


@pytest.mark.parametrize("event", ["EXECUTION_INITIATED", "CHILD_WORKFLOW_EXECUTION_STARTED"])
async def test_e8_what_a_child_has_is_being_undone(event: str) -> None:
    ledger = await read(until(recorded("delegated"), event))
    [child] = ledger.children
    assert [str(e.state) for e in ledger] == ["open"] * 3 + ["undoing"] * 2
    assert [e.handed_to for e in ledger] == [None] * 3 + [child.workflow_id] * 2
    assert [e.ordinal for e in ledger.interrupted()] == [4, 5]
    assert [(e.verdict, e.started_at is not None) for e in ledger.report.entries] == [
        (None, True),
        (None, True),
    ]
    assert ledger.report.status == "running"


async def test_e8_a_recovery_workflow_has_its_plan_from_the_start() -> None:
    found = recorded("recovery")
    begun = await read({"events": found["events"][:1]})
    assert begun.origin == "gone"
    assert [(e.key, str(e.state), e.carried) for e in begun] == [
        ("5eed-1", "open", True),
        ("5eed-2", "open", True),
    ]
    assert [e.verdict for e in begun.report.entries] == [None, None]
    ledger = await read(found)
    assert not ledger.unreadable
    assert [str(e.state) for e in ledger] == ["undone", "undone"]
    assert [(e.key, e.verdict) for e in ledger.report.entries] == [
        ("5eed-2", "undone"),
        ("5eed-1", "undone"),
    ]
    assert (ledger.report.status, ledger.report.trigger) == ("completed", "operator-request")
    assert [undo.by for entry in ledger for undo in entry.undos] == [None, None]


async def test_e8_the_first_child_tells_which_irreversible_actions_the_unwind_answers_for() -> None:
    found = until(recorded("delegated"), "CHILD_WORKFLOW_EXECUTION_INITIATED")
    forged = {"ACTIVITY_TASK_SCHEDULED": {"a": f"{SEED}-1", "R": 1}}
    forged["CHILD_WORKFLOW_EXECUTION_INITIATED"] = {
        "w": 1,
        "d": 1,
        "l": "a part",
        "k": [f"{SEED}-1"],
    }
    for event in found["events"]:
        kind = next((k for k in forged if event["eventType"].endswith(k)), None)
        if kind is not None:
            [attributes] = [v for name, v in event.items() if name.endswith("Attributes")]
            header = attributes["header"]["fields"]["agboss-compensation"]
            header["data"] = base64.b64encode(json.dumps(forged.pop(kind)).encode()).decode()
    ledger = await read(found)
    assert [str(e.state) for e in ledger] == ["irreversible", *["open"] * 2, *["undoing"] * 2]
    assert [(e.key, e.verdict) for e in ledger.report.entries] == [
        (f"{SEED}-5", None),
        (f"{SEED}-4", None),
        (f"{SEED}-1", "irreversible"),
    ]
    assert [u.unit for u in ledger.report.unwinds] == ["a part"]


async def test_e8_a_child_that_gives_no_answer_leaves_its_entries_failed() -> None:
    found = until(recorded("delegated"), "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    replaced(found["events"][-1], "terminated", {})
    ledger = await read(found)
    reason = "handed to a workflow that ended with TerminatedError"
    assert [(str(e.state), e.undos[0].outcome, e.undos[0].reason) for e in ledger.entries[3:]] == [
        ("failed", None, reason)
    ] * 2
    assert [(e.verdict, e.reason) for e in ledger.report.entries] == [("failed", reason)] * 2


@pytest.mark.parametrize("data", [b"nothing", b'{"v":1}\nnothing', b'{"v":1}\n'])
async def test_e8_an_answer_that_is_none_is_what_the_run_made_of_it(data: bytes) -> None:
    found = until(recorded("delegated"), "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    payload_of(found, _COMPLETED)["data"] = base64.b64encode(data).decode()
    ledger = await read(found)
    assert [(e.verdict, e.reason) for e in ledger.report.entries] == [
        ("failed", "handed to a workflow that ended with RecordError")
    ] * 2


async def test_e8_what_an_answer_leaves_out_is_failed_and_what_was_not_called_has_no_call() -> None:
    found = until(recorded("delegated"), "CHILD_WORKFLOW_EXECUTION_COMPLETED")
    answer = {f"{SEED}-5": ["not_run", "total_timeout", None, None]}
    rewritten(payload_of(found, _COMPLETED), lambda _: answer)
    ledger = await read(found)
    assert [(str(e.state), len(e.undos)) for e in ledger.entries[3:]] == [
        ("failed", 1),
        ("not_run", 0),
    ]
    assert [(e.verdict, e.reason) for e in ledger.report.entries] == [
        ("not_run", "total_timeout"),
        ("failed", "it was not answered for"),
    ]
    assert ledger.entries[4].handed_to == ledger.children[0].workflow_id


@pytest.mark.parametrize("attributes", [_INITIATED, _COMPLETED])
async def test_e8_what_cannot_be_decoded_is_not_guessed(attributes: str) -> None:
    found = recorded("delegated")
    payload_of(found, attributes)["metadata"]["encoding"] = base64.b64encode(b"secret").decode()
    ledger = await read(found)
    assert [(u.what, u.reason) for u in ledger.unreadable] == [
        ("hand-over", "its encoding is secret; give the client's data_converter")
    ]
    known = "open" if attributes == _INITIATED else "undoing"
    assert [str(e.state) for e in ledger.entries[3:]] == [known] * 2
    assert [str(e.state) for e in ledger.entries[:3]] == ["undone", "failed", "undone"]


async def test_e8_a_plan_that_cannot_be_decoded_leaves_its_undos_without_a_name() -> None:
    found = recorded("recovery")
    started = found["events"][0]["workflowExecutionStartedEventAttributes"]
    started["input"]["payloads"][0]["metadata"]["encoding"] = base64.b64encode(b"secret").decode()
    ledger = await read(found)
    assert [u.what for u in ledger.unreadable] == ["hand-over", "undo", "undo"]
    assert [(e.contract.action, str(e.state)) for e in ledger] == [("unknown", "undone")] * 2


# -- what cannot be


def of_plan(change: Callable[[Any], Any], version: int = 1) -> dict[str, Any]:
    found = recorded("delegated")
    rewritten(payload_of(found, _INITIATED), change, version)
    return found


def twice(plan: Any) -> Any:
    return {**plan, "entries": [plan["entries"][0]] * 2}


def of_nobody(plan: Any) -> Any:
    plan["entries"][0]["k"] = f"{SEED}-9"
    return plan


def undone_before() -> dict[str, Any]:
    """The second child is given what the first one was."""
    found = recorded("delegated")
    plans = [e[_INITIATED]["input"] for e in found["events"] if _INITIATED in e]
    plans[1]["payloads"] = plans[0]["payloads"]
    return found


def of_another_type() -> dict[str, Any]:
    found = recorded("delegated")
    event = next(e for e in found["events"] if _INITIATED in e)
    event[_INITIATED]["workflowType"]["name"] = "Other"
    return found


def with_answer(change: Callable[[Any], Any], version: int = 1) -> dict[str, Any]:
    found = recorded("delegated")
    rewritten(payload_of(found, _COMPLETED), change, version)
    return found


def with_result(change: Callable[[Any], Any]) -> dict[str, Any]:
    found = recorded("recovery")
    rewritten(payload_of(found, "workflowExecutionCompletedEventAttributes"), change)
    return found


def recovering_nobody() -> dict[str, Any]:
    found = recorded("recovery")
    found["events"][0]["workflowExecutionStartedEventAttributes"]["workflowType"]["name"] = "Other"
    return found


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (of_plan(lambda plan: plan, version=2), "recovery plan of version 2; this code reads 1"),
        (of_plan(lambda plan: {**plan, "order": [0, None]}), "recovery plan is damaged"),
        (of_plan(lambda plan: {**plan, "order": [0]}), "does not fit its entries"),
        (
            of_plan(lambda plan: {**plan, "unwind": 2}),
            "plan is of unwind 2, its header of unwind 1",
        ),
        (of_plan(twice), "which is undoing"),
        (of_plan(of_nobody), f"{SEED}-4 is undone, its events say that it is open"),
        (undone_before(), "which is undone"),
        (of_another_type(), "Other takes over a part of an unwind and is no agboss.recovery"),
        (with_answer(lambda a: a, version=2), "recovery result of version 2; this code reads 1"),
        (with_answer(lambda a: {**a, f"{SEED}-5": ["failed", "X", None, None]}), "report says"),
        (with_result(lambda r: {"5eed-1": r["5eed-1"]}), "answers for other entries"),
        (with_result(lambda r: {**r, "5eed-1": ["failed", "X", None, None]}), "result says"),
        (recovering_nobody(), "for another workflow, and this is no recovery workflow"),
    ],
)
async def test_what_no_workflow_does_is_an_error(found: dict[str, Any], problem: str) -> None:
    with pytest.raises(HistoryError, match=problem) as caught:
        await read(found)
    assert caught.value.event_id > 0


def test_a_plan_of_another_shape_is_a_record_error() -> None:
    for body in (b"[]", b"{}", b'{"entries":[1],"order":[0],"unwind":1,"trigger":"x"}'):
        with pytest.raises(RecordError):
            recovery.decode_plan(b'{"v":1,"id":"i","run":"r"}\n' + zlib.compress(body))
