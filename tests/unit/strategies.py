"""Values that the core works on, drawn at random."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload

from agboss_temporal.core.contract import Contract, OnUnknown
from agboss_temporal.core.report import (
    TRIGGERS,
    VERDICTS,
    CompensationReport,
    EntryReport,
    InDoubtReport,
    Status,
    UnwindReport,
)
from agboss_temporal.core.wire import CallRecord

DOUBTS = ("timed_out", "cancelled", "raised", "lost_result", "abandoned")

names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=30
)
keys = st.builds(
    "{:x}-{}".format, st.integers(0, 2**64 - 1), st.integers(min_value=1, max_value=9999)
)
units = st.lists(st.integers(0, 3), max_size=3).map(tuple)
verdicts = st.sampled_from([*sorted(VERDICTS), None])
times = st.none() | st.datetimes(
    datetime(2000, 1, 1),
    datetime(2100, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)

contracts = st.builds(
    Contract,
    action=st.sampled_from(["reserve", "charge"]),
    undo=st.just("release"),
    committer=st.sampled_from([None, "ship", "bill"]),
    on_unknown=st.sampled_from(get_args(OnUnknown)),
)

entry_reports = st.builds(
    EntryReport,
    key=keys,
    action=names,
    undo=st.none() | names,
    unwind=st.integers(1, 30),
    outcome=st.sampled_from(["completed", "unknown"]),
    verdict=verdicts,
    reason=st.none() | names,
    started_at=times,
    ended_at=times,
    decided_by=st.none() | names,
)
doubt_reports = st.builds(
    InDoubtReport,
    key=keys,
    name=names,
    kind=st.sampled_from(DOUBTS),
    role=st.sampled_from(["action", "committer"]),
)
unwind_reports = st.builds(
    UnwindReport,
    ordinal=st.integers(1, 30),
    trigger=st.sampled_from([*TRIGGERS, "join", "handler", "explicit"]),
    cause=st.none() | names,
    status=st.sampled_from(get_args(Status)),
    started_at=times,
    ended_at=times,
    unit=st.none() | names,
)


def reports(max_entries: int = 8) -> st.SearchStrategy[CompensationReport]:
    return st.builds(
        CompensationReport,
        status=st.sampled_from(get_args(Status)),
        trigger=st.none() | st.sampled_from(TRIGGERS),
        cause=st.none() | names,
        plan_version=st.integers(1, 5),
        entries=st.lists(entry_reports, max_size=max_entries).map(tuple),
        in_doubt=st.lists(doubt_reports, max_size=4).map(tuple),
        unwinds=st.lists(unwind_reports, max_size=4).map(tuple),
        older_unwinds=st.integers(0, 9),
        also_failed=st.lists(names, max_size=3).map(tuple),
        counts=st.dictionaries(st.sampled_from(sorted(VERDICTS)), st.integers(1, 9)),
        omitted=st.just(0),
    )


_seconds = st.integers(1, 10**6) | st.floats(0.001, 1000)
_options = st.fixed_dictionaries(
    {},
    optional={
        "I": st.sampled_from(["args", "context", "nothing"]),
        "D": st.just(1),
        "R": st.just(1),
        "N": st.lists(names, max_size=2),
        "Q": names,
        "S": _seconds,
        "C": _seconds,
        "H": _seconds,
        "M": st.integers(1, 9),
        "Z": st.integers() | names,
    },
)
_causes = st.none() | names
_updates = st.none() | names
_ended = st.lists(units.filter(bool), max_size=3).map(tuple)

_forward = st.builds(
    CallRecord,
    action_key=keys,
    committer_key=st.none() | keys,
    undo=st.none() | names,
    committer=st.none() | names,
    unit=units,
    options=_options,
    update=_updates,
)
_committers = st.builds(CallRecord, committer_key=keys, unit=units, ended=_ended, update=_updates)
_planned_undos = st.builds(
    CallRecord,
    undoes=keys,
    unwind=st.integers(1, 30),
    trigger=st.none() | st.sampled_from(TRIGGERS),
    cause=_causes,
    origin=st.none() | names,
    undoes_action=st.none() | names,
    link=st.none() | names,
)
_handed_over = st.builds(
    CallRecord,
    hands_over=st.integers(1, 30),
    unwind=st.integers(1, 30),
    trigger=st.sampled_from(TRIGGERS),
    cause=_causes,
)
_explicit_undos = st.builds(CallRecord, undoes=keys, explicit=st.just(True), unit=units)
_lost_undos = st.builds(
    CallRecord, undoes=st.just(""), explicit=st.just(True), own_key=keys, unit=units
)
_committing_undos = st.builds(
    CallRecord, undoes=keys, explicit=st.just(True), committer_key=keys, unit=units
)

records = st.one_of(
    _forward,
    _committers,
    _planned_undos,
    _handed_over,
    _explicit_undos,
    _lost_undos,
    _committing_undos,
)


def payload(data: bytes) -> Payload:
    """Make a recorded payload."""
    return Payload(metadata={"encoding": b"binary/plain"}, data=data)


payloads = st.builds(payload, st.binary(max_size=2))
