"""The plan that another workflow executes, and its result, are read as they were written."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.carry import Carried
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.plan import Planned
from agboss_temporal.core.recovery import (
    MAX_REASON,
    RECOVERY_TYPE,
    Outcome,
    RecoveryPlan,
    decode_plan,
    decode_result,
    encode_plan,
    encode_result,
)
from tests.unit.strategies import DOUBTS, keys, names, times, verdicts

CONTRACT = Contract("reserve", undo="release")

carried = st.builds(
    Carried,
    key=keys,
    contract=st.builds(
        Contract,
        action=names,
        kind=st.sampled_from(["activity", "workflow"]),
        undo=names,
        undo_input=st.sampled_from(["result", "args", "context", "nothing"]),
        on_unknown=st.sampled_from(["report", "undo"]),
    ),
    raw=st.none() | st.binary(),
    args=st.lists(st.binary(), max_size=2).map(tuple),
    doubt=st.none() | st.sampled_from(DOUBTS),
    task_queue=st.none() | names,
    after=st.none() | st.integers(0, 3),
    undo_options=st.none() | st.dictionaries(names, st.integers(), min_size=1, max_size=2),
    origin=st.none() | names,
)


@st.composite
def recovery_plans(draw: st.DrawFn) -> RecoveryPlan:
    entries = draw(st.lists(carried, max_size=4))
    return RecoveryPlan(
        workflow_id=draw(names),
        run_id=draw(names),
        entries=entries,
        order=draw(st.permutations(range(len(entries)))),
        unwind=draw(st.integers(1, 9)),
        trigger=draw(names),
        cause=draw(st.none() | names),
        message=draw(st.none() | names),
        policy=draw(st.dictionaries(names, st.integers(), max_size=2)),
        until=draw(times),
        fails=draw(st.booleans()),
    )


@given(recovery_plans())
def test_a_plan_comes_back_as_it_was_written(plan: RecoveryPlan) -> None:
    assert decode_plan(encode_plan(plan)) == plan


@given(st.lists(st.tuples(keys, verdicts, st.none() | names, times, times), max_size=4))
def test_a_result_comes_back_as_it_was_written(rows: list[tuple[Any, ...]]) -> None:
    plan = [
        Planned(Entry(key, CONTRACT, 1), verdict, reason, started, ended)
        for key, verdict, reason, started, ended in rows
    ]
    expected = {key: Outcome(*rest) for key, *rest in rows}
    assert decode_result(encode_result(plan)) == expected


def test_what_it_is_can_be_read_without_unpacking_it() -> None:
    plan = RecoveryPlan("order-7", "run", [Carried("k-1", CONTRACT)], [0], 1, "run-cancel")
    head = encode_plan(plan).partition(b"\n")[0]
    assert json.loads(head) == {"v": 1, "id": "order-7", "run": "run", "n": 1}


def test_a_long_reason_is_cut() -> None:
    planned = Planned(Entry("k-1", CONTRACT, 1), "failed", "x" * 10_000)
    reason = decode_result(encode_result([planned]))["k-1"].reason
    assert reason == "x" * MAX_REASON


def framed(about: Any, body: Any) -> bytes:
    return json.dumps(about).encode() + b"\n" + zlib.compress(json.dumps(body).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"v":1,"id":"a","run":"r"}\nnot compressed',
        framed({"v": 2, "id": "a", "run": "r"}, {}),
        framed({"v": 1, "id": "a", "run": "r"}, []),
        framed({"v": 1, "id": "a", "run": "r"}, {"entries": [{}]}),
        framed(
            {"v": 1, "id": "a", "run": "r"},
            {"entries": [], "order": [1], "unwind": 1, "trigger": "t"},
        ),
    ],
)
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        decode_plan(data)


@pytest.mark.parametrize(
    "data", [b"", framed({"v": 2}, {}), framed({"v": 1}, {"k": 1}), framed({"v": 1}, [])]
)
def test_what_is_no_result_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        decode_result(data)


def test_fields_of_a_later_version_are_passed_over() -> None:
    body = {"entries": [], "order": [], "unwind": 1, "trigger": "t", "later": 1}
    assert decode_plan(framed({"v": 1, "id": "a", "run": "r", "x": 1}, body)).trigger == "t"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    row = ["undone", None, now.isoformat(), now.isoformat(), "later"]
    assert decode_result(framed({"v": 1}, {"k": row})) == {"k": Outcome("undone", None, now, now)}


def test_the_registered_name_never_changes() -> None:
    assert RECOVERY_TYPE == "agboss.recovery"
