"""A report that has to be short stays under its limit, keeps what failed, and says what it left."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.entry import UNFINISHED
from agboss_temporal.core.report import (
    MAX_DETAIL_BYTES,
    CompensationReport,
    EntryReport,
    InDoubtReport,
    UnwindReport,
)
from tests.unit.strategies import reports


def size(report: CompensationReport) -> int:
    return len(json.dumps(report.to_dict(), separators=(",", ":")).encode())


def total(report: CompensationReport) -> int:
    lists = (report.entries, report.in_doubt, report.unwinds, report.also_failed)
    return sum(map(len, lists))


def entry(number: int, verdict: str | None, action: str = "reserve") -> EntryReport:
    return EntryReport(f"{number:x}-{number}", action, "release", 1, verdict=verdict)


@given(reports(max_entries=12), st.floats(0, 1))
def test_it_never_exceeds_a_limit_that_its_head_fits(
    report: CompensationReport, share: float
) -> None:
    head = CompensationReport.from_dict({**report.to_dict(), "entries": [], "omitted": 99})
    limit = size(head) + int(share * (size(report) - size(head)))
    assert size(report.shortened(limit)) <= limit


@given(reports(max_entries=12), st.floats(0, 1))
def test_what_was_left_behind_is_kept_and_the_rest_is_counted(
    report: CompensationReport, share: float
) -> None:
    whole = size(report)
    short = report.shortened(int(whole * share))
    if short == report:
        return
    kept, dropped = list(short.entries), list(report.entries)
    for each in kept:
        dropped.remove(each)
    assert short.omitted == len(dropped)
    assert short.omitted_in_doubt == len(report.in_doubt) - len(short.in_doubt)
    assert short.omitted_also_failed == len(report.also_failed) - len(short.also_failed)
    assert short.older_unwinds - report.older_unwinds == len(report.unwinds) - len(short.unwinds)
    assert total(short) < total(report)
    rank = [each.verdict in (None, "undone") for each in kept]
    assert rank == sorted(rank)
    if any(each.verdict in (None, "undone") for each in kept):
        assert all(each.verdict in (None, "undone") for each in dropped)


@given(reports(max_entries=6))
def test_a_report_that_fits_is_left_alone(report: CompensationReport) -> None:
    assert report.shortened(size(report)) is report
    assert report.shortened() == report


@given(reports(max_entries=12), st.integers(0, 4000))
def test_counts_status_and_causes_survive(report: CompensationReport, limit: int) -> None:
    short = report.shortened(limit)
    assert (short.status, short.counts, short.cause) == (
        report.status,
        report.counts,
        report.cause,
    )
    assert CompensationReport.from_dict(short.to_dict()) == short


def test_the_default_limit_is_that_of_an_errors_details() -> None:
    entries = [entry(n, "undone") for n in range(2000)] + [entry(9999, "failed")]
    short = CompensationReport(entries=tuple(entries)).shortened()
    assert MAX_DETAIL_BYTES == 32768
    assert MAX_DETAIL_BYTES - 300 < size(short) <= MAX_DETAIL_BYTES
    assert short.entries[0] == entries[-1]
    assert short.omitted == 2001 - len(short.entries)


def test_an_irreversible_entry_never_crowds_out_a_failed_one() -> None:
    entries = [entry(n, "irreversible") for n in range(2000)] + [entry(9999, "failed")]
    short = CompensationReport(entries=tuple(entries)).shortened()
    assert any(each.verdict in UNFINISHED for each in short.entries)


def test_long_names_in_doubt_do_not_break_the_limit() -> None:
    doubts = tuple(InDoubtReport(f"k-{n}", "n" * 900, "timed_out") for n in range(60))
    short = CompensationReport(in_doubt=doubts, entries=(entry(1, "failed"),)).shortened()
    assert size(short) <= MAX_DETAIL_BYTES


def test_shortening_twice_counts_what_both_left_out() -> None:
    report = CompensationReport(entries=tuple(entry(n, "undone") for n in range(100)))
    twice = report.shortened(4000).shortened(2000)
    assert twice.omitted == 100 - len(twice.entries)


def test_whatever_is_long_the_limit_holds() -> None:
    entries = tuple(entry(n, "failed", "a" * 900) for n in range(100))
    report = CompensationReport(
        cause="c" * 50_000,
        entries=entries,
        in_doubt=tuple(InDoubtReport(f"k-{n}", "n" * 900, "raised") for n in range(60)),
        unwinds=tuple(UnwindReport(n, "explicit", "c" * 9000, "failed") for n in range(1, 21)),
        also_failed=("f" * 9000,) * 30,
    )
    short = report.shortened()
    assert size(short) <= MAX_DETAIL_BYTES
    assert short.entries == entries[: len(short.entries)] != ()
    assert (short.omitted_in_doubt, short.older_unwinds, short.omitted_also_failed) == (60, 20, 30)


def test_of_unwinds_the_newest_are_kept_in_their_order() -> None:
    unwinds = tuple(UnwindReport(n, "explicit", "c" * 3000, "failed") for n in range(1, 21))
    short = CompensationReport(unwinds=unwinds, older_unwinds=4).shortened()
    count = len(short.unwinds)
    assert 0 < count < 20
    assert short.unwinds == unwinds[-count:]
    assert short.older_unwinds == 24 - count
