"""A report survives the wire, and what is not a report is told apart from one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.report import CompensationReport
from tests.unit.strategies import reports

json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(reports())
def test_a_report_comes_back_from_json(report: CompensationReport) -> None:
    data = json.loads(json.dumps(report.to_dict()))
    assert CompensationReport.from_dict(data) == report


@given(reports(), json_values)
def test_fields_of_a_later_version_are_passed_over(report: CompensationReport, new: Any) -> None:
    data = report.to_dict()
    data["news"] = new
    for part in ("entries", "in_doubt", "unwinds"):
        for item in data[part]:
            item["news"] = new
    assert CompensationReport.from_dict(data) == report


def test_fields_that_are_absent_have_their_defaults() -> None:
    assert CompensationReport.from_dict({"version": 1}) == CompensationReport()


@pytest.mark.parametrize("version", [None, 0, 2, "1", [1]])
def test_another_version_is_refused_by_its_number(version: Any) -> None:
    data = {**CompensationReport().to_dict(), "version": version}
    with pytest.raises(RecordError, match="version") as refusal:
        CompensationReport.from_dict(data)
    assert repr(version) in str(refusal.value)


def test_a_version_is_required() -> None:
    with pytest.raises(RecordError):
        CompensationReport.from_dict({})


ENTRY = {"key": "k-1", "action": "reserve", "undo": "release", "unwind": 1}


@pytest.mark.parametrize("part", ["entries", "in_doubt", "unwinds"])
def test_an_item_without_its_required_fields_is_no_report(part: str) -> None:
    with pytest.raises(RecordError):
        CompensationReport.from_dict({"version": 1, part: [{}]})


@pytest.mark.parametrize(
    "data",
    [
        5,
        ["version"],
        {"version": 1, "entries": 5},
        {"version": 1, "entries": [5]},
        {"version": 1, "unwinds": ["x"]},
        {"version": 1, "also_failed": 5},
        {"version": 1, "also_failed": "Boom"},
        {"version": 1, "status": None},
        {"version": 1, "counts": {"undone": "3"}},
        {"version": 1, "omitted": True},
        {"version": 1, "entries": {}},
        {"version": 1, "entries": [{**ENTRY, "started_at": "yesterday"}]},
    ],
    ids=repr,
)
def test_what_has_another_shape_is_no_report(data: Any) -> None:
    with pytest.raises(RecordError):
        CompensationReport.from_dict(data)


def test_a_report_holds_no_payload() -> None:
    fields = set(CompensationReport().to_dict())
    assert fields.isdisjoint({"raw", "value", "args", "result", "message", "payload"})
