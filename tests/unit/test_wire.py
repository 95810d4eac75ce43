"""The record in the header of a named call: small, versioned, read back as it was written."""

from __future__ import annotations

import json
from datetime import timedelta
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.common import RetryPolicy

from agboss_temporal.core import wire
from agboss_temporal.core.contract import Contract, UndoInput
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.wire import CallRecord
from tests.unit.strategies import records

KNOWN = set("vaszxnucpfhwtedolmkby" + ascii_uppercase)


@given(records)
def test_a_record_comes_back_as_it_was_written(record: CallRecord) -> None:
    assert wire.decode(wire.encode(record)) == record


@given(records, st.dictionaries(st.text(max_size=3).filter(lambda k: k not in KNOWN), st.text()))
def test_unknown_fields_are_passed_over(record: CallRecord, unknown: dict[str, str]) -> None:
    written = {**json.loads(wire.encode(record)), **unknown}
    assert wire.decode(json.dumps(written).encode()) == record


@given(records)
def test_only_documented_fields_are_written_and_none_that_is_empty(record: CallRecord) -> None:
    written = json.loads(wire.encode(record))
    assert set(written) <= KNOWN - {"v"}
    assert None not in written.values()
    assert {} not in written.values()


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (
            CallRecord(action_key="a-1", undo="release", committer="ship", unit=(1, 0)),
            '{"a":"a-1","u":"release","c":"ship","p":"1.0"}',
        ),
        (CallRecord(committer_key="a-2"), '{"s":"a-2"}'),
        (
            CallRecord(undoes="a-1", unwind=1, trigger="run-cancel", cause="Boom"),
            '{"z":"a-1","w":1,"t":"run-cancel","e":"Boom"}',
        ),
        (CallRecord(undoes="a-1", explicit=True), '{"x":"a-1"}'),
        (CallRecord(undoes="a-1", unwind=1, origin="order-7"), '{"z":"a-1","w":1,"o":"order-7"}'),
        (
            CallRecord(hands_over=2, unwind=1, trigger="run-cancel"),
            '{"w":1,"t":"run-cancel","d":2}',
        ),
        (CallRecord(undoes="", explicit=True, own_key="a-3"), '{"x":"","n":"a-3"}'),
        (CallRecord(action_key="a-1", options={"I": "args"}), '{"a":"a-1","I":"args"}'),
    ],
)
def test_the_format_is_pinned_because_histories_keep_it(record: CallRecord, written: str) -> None:
    assert wire.encode(record).decode() == written
    assert wire.decode(written.encode()) == record


def test_the_header_has_the_name_that_histories_keep() -> None:
    assert wire.HEADER == "agboss-compensation"


@pytest.mark.parametrize(
    ("record", "role", "key"),
    [
        (CallRecord(action_key="a-1"), "action", "a-1"),
        (CallRecord(action_key="a-1", committer_key="a-1"), "action", "a-1"),
        (CallRecord(committer_key="a-2"), "committer", "a-2"),
        (CallRecord(undoes="a-1", unwind=1), "undo", "a-1"),
        (CallRecord(undoes="a-1", explicit=True, committer_key="a-3"), "undo", "a-1"),
        (CallRecord(undoes="", explicit=True, own_key="a-3"), "undo", "a-3"),
    ],
)
def test_a_call_goes_by_one_role_and_one_key(record: CallRecord, role: str, key: str) -> None:
    assert (record.role, record.key) == (role, key)


@given(st.integers(0, 2**64 - 1), st.integers(1, 999))
def test_a_typical_record_is_at_most_68_bytes(seed: int, ordinal: int) -> None:
    record = CallRecord(
        action_key=f"{seed:x}-{ordinal}", undo="release_stock", committer="ship_order"
    )
    assert len(wire.encode(record)) <= 68


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        (b"[]", "object"),
        (b'"a-1"', "object"),
        (b"7", "object"),
        (b"null", "object"),
        (b'{"v":2,"a":"a-1"}', "version 2"),
        (b'{"v":"1","a":"a-1"}', "version '1'"),
        (b'{"v":null,"a":"a-1"}', "version None"),
        (b"{}", "no key"),
        (b'{"u":"release"}', "no key"),
        (b'{"z":"","w":1}', "no key"),
        (b'{"a":"a-1","p":"1.x"}', "unit path"),
        (b'{"a":"a-1","p":"1..2"}', "unit path"),
        (b'{"a":"a-1","p":"."}', "unit path"),
    ],
)
def test_what_is_not_a_record_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        wire.decode(data)


def test_version_one_may_be_written_out() -> None:
    assert wire.decode(b'{"v":1,"a":"a-1"}') == CallRecord(action_key="a-1")


@pytest.mark.parametrize(
    "fields",
    [
        {"p": 5},
        {"p": [1]},
        {"p": "1.-2"},
        {"p": "1_0"},
        {"a": 5},
        {"u": 5},
        {"w": "1"},
        {"x": 7},
    ],
    ids=repr,
)
def test_a_field_of_another_type_is_refused(fields: dict[str, Any]) -> None:
    data = json.dumps({"a": "a-1", **fields}).encode()
    with pytest.raises(RecordError):
        wire.decode(data)


@given(st.binary(max_size=40))
def test_bytes_of_any_kind_are_read_or_refused(data: bytes) -> None:
    try:
        found = wire.decode(data)
    except RecordError:
        return
    assert found.key


def test_a_deeply_nested_header_is_refused() -> None:
    with pytest.raises(RecordError):
        wire.decode(b"[" * 100_000)


@given(
    st.text("0123456789abcdef-", min_size=1),
    st.lists(st.integers(0, 99), max_size=3).map(tuple),
    st.sampled_from(["release", 'a "b"', "Rückgabe"]),
    st.sampled_from([None, "ship"]),
    st.sampled_from(["result", "args"]),
)
def test_a_template_writes_what_a_record_says(
    key: str, unit: UnitPath, undo: str, committer: str | None, undo_input: UndoInput
) -> None:
    contract = Contract("reserve", undo=undo, committer=committer, undo_input=undo_input)
    record = CallRecord(
        action_key=key,
        undo=undo,
        committer=committer,
        unit=unit,
        options=wire.options_of(contract),
    )
    assert wire.ActionTemplate.of(contract).fill(key, unit) == wire.encode(record)


def test_options_that_are_default_are_not_written() -> None:
    assert wire.options_of(Contract("reserve", undo="release", committer="ship")) == {}


def test_every_option_has_its_short_name() -> None:
    contract = Contract(
        "reserve",
        undo="release",
        undo_input="args",
        on_unknown="undo",
        irreversible=True,
        no_effect_errors=("OutOfStock",),
        undo_options={
            "task_queue": "undos",
            "start_to_close_timeout": timedelta(seconds=5),
            "schedule_to_close_timeout": timedelta(minutes=2),
            "heartbeat_timeout": timedelta(seconds=1.5),
            "retry_policy": RetryPolicy(maximum_attempts=3),
        },
    )
    assert wire.options_of(contract) == {
        "I": "args",
        "D": 1,
        "R": 1,
        "N": ["OutOfStock"],
        "Q": "undos",
        "S": 5,
        "C": 120,
        "H": 1.5,
        "M": 3,
    }
    json.dumps(wire.options_of(contract))


def test_unlimited_attempts_are_the_default() -> None:
    contract = Contract("reserve", undo="release", undo_options={"retry_policy": RetryPolicy()})
    assert wire.options_of(contract) == {}


@pytest.mark.parametrize("name", list("aszxnucpfhwtedolkb"))
def test_a_field_that_is_null_is_absent(name: str) -> None:
    data = json.dumps({"s": "a-2", name: None} if name != "s" else {"a": "a-2", "s": None})
    assert wire.decode(data.encode()).key == "a-2"


def test_a_boolean_is_no_number() -> None:
    with pytest.raises(RecordError):
        wire.decode(b'{"z":"a-1","w":true}')
