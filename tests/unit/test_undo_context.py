"""An ``UndoContext`` is JSON that any language can read, and Python decodes with its types."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadConverter

from agboss_temporal import UndoContext
from agboss_temporal.core.errors import RecordError
from agboss_temporal.undo_context import UndoReason


@dataclass
class Receipt:
    id: str


def payload(value: Any) -> Payload:
    [made] = PayloadConverter.default.to_payloads([value])
    return made


def context(**fields: Any) -> UndoContext:
    given: dict[str, Any] = {
        "key": "9f-1",
        "action": "reserve",
        "outcome": "completed",
        "reason": UndoReason("run-cancel", "CancelledError", "why"),
        "args": [payload("shoe"), payload(2)],
        "result": payload(Receipt("r-1")),
        **fields,
    }
    return UndoContext(**given)


def through_json(given: UndoContext) -> UndoContext:
    [made] = PayloadConverter.default.to_payloads([given])
    assert made.metadata["encoding"] == b"json/plain"
    [back] = PayloadConverter.default.from_payloads([made], [UndoContext])
    assert isinstance(back, UndoContext)
    return back


def test_it_travels_as_ordinary_json_and_comes_back() -> None:
    back = through_json(context())
    assert (back.key, back.action, back.outcome) == ("9f-1", "reserve", "completed")
    assert back.reason == UndoReason("run-cancel", "CancelledError", "why")
    assert back.args(str, int) == ("shoe", 2)
    assert back.args() == ("shoe", 2)
    assert back.has_result
    assert back.result(Receipt) == Receipt("r-1")
    assert back.result() == {"id": "r-1"}


def test_without_a_result_there_is_none() -> None:
    back = through_json(context(result=None, args=[], outcome="unknown"))
    assert "result" not in back.to_dict()
    assert not back.has_result
    assert back.result(Receipt) is None
    assert back.args(str) == ()
    assert back.outcome == "unknown"


def test_a_result_of_none_is_a_result() -> None:
    back = through_json(context(result=payload(None)))
    assert back.has_result
    assert back.result() is None


def test_another_language_finds_base64_payloads() -> None:
    data = json.loads(json.dumps(context().to_dict()))
    assert set(data) == {"version", "key", "action", "outcome", "reason", "args", "result"}
    assert data["reason"] == {
        "trigger": "run-cancel",
        "error_type": "CancelledError",
        "message": "why",
    }
    assert base64.b64decode(data["result"]["metadata"]["encoding"]) == b"json/plain"
    assert json.loads(base64.b64decode(data["result"]["data"])) == {"id": "r-1"}


def test_fields_of_a_later_version_are_passed_over() -> None:
    data = {**context().to_dict(), "news": 1}
    data["reason"] = {**data["reason"], "news": 2}
    assert UndoContext.from_dict(data).to_dict() == context().to_dict()


@pytest.mark.parametrize("version", [None, 2, "1"])
def test_another_version_is_refused(version: Any) -> None:
    with pytest.raises(RecordError, match="version"):
        UndoContext.from_dict({**context().to_dict(), "version": version})


@pytest.mark.parametrize(
    "change",
    [
        {"key": None},
        {"action": None},
        {"result": 5},
        {"args": [5]},
        {"args": 5},
        {"key": 5},
        {"reason": "why"},
        {"outcome": "maybe"},
        {"outcome": []},
        {"result": {"data": 5}},
        {"result": {"colour": 1}},
    ],
    ids=repr,
)
def test_what_is_no_context_is_refused(change: dict[str, Any]) -> None:
    data = {**context().to_dict(), **change}
    data = {name: value for name, value in data.items() if value is not None}
    with pytest.raises(RecordError):
        UndoContext.from_dict(data)


@pytest.mark.parametrize("data", [None, 5, [], "context"])
def test_what_is_no_object_is_no_context(data: Any) -> None:
    with pytest.raises(RecordError):
        UndoContext.from_dict(data)
