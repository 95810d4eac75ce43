"""The table for the Web UI: short, and not broken by what stands in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from agboss_temporal.core.markdown import MAX_ROWS, details
from agboss_temporal.core.report import CompensationReport, EntryReport, InDoubtReport
from tests.unit.strategies import reports

LINE_ENDS = re.compile(r"\r\n|\n|\r")
"""What ends a line in CommonMark."""


def rows(text: str) -> list[list[str]]:
    """Read the cells of a table's body as a renderer does."""
    lines = [line for line in LINE_ENDS.split(text) if line.startswith("|")]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if not line.startswith("|---")
    ][1:]


def entry(number: int, action: str = "reserve", reason: str | None = None) -> EntryReport:
    return EntryReport(f"k-{number}", action, "release", 1, verdict="failed", reason=reason)


@given(reports(max_entries=8))
def test_every_entry_is_one_row_of_three_cells(report: CompensationReport) -> None:
    found = rows(details(report))
    assert len(found) == len(report.entries)
    for cells, each in zip(found, report.entries, strict=True):
        assert len(cells) == 3
        assert cells[2].startswith(each.verdict or "…")


@given(reports(max_entries=3))
def test_the_heading_says_status_and_trigger(report: CompensationReport) -> None:
    heading = details(report).split("\n")[0]
    assert report.status in heading
    assert (report.trigger or "") in heading


@pytest.mark.parametrize(("count", "hidden"), [(49, None), (50, None), (51, 1), (500, 450)])
def test_at_most_fifty_rows_and_the_rest_is_counted(count: int, hidden: int | None) -> None:
    text = details(CompensationReport(entries=tuple(entry(n) for n in range(count))))
    assert len(rows(text)) == min(count, 50)
    assert MAX_ROWS == 50
    assert (f"and {hidden} more" in text) if hidden else ("more" not in text)


@pytest.mark.parametrize("nasty", ["a|b", "a\nb", "|", "a||b\n|---|"])
def test_pipes_and_line_ends_stay_inside_their_cell(nasty: str) -> None:
    text = details(CompensationReport(entries=(entry(1, nasty, nasty), entry(2))))
    found = rows(text)
    assert [len(cells) for cells in found] == [3, 3]
    assert found[0][0].replace("\\|", "|") == nasty.replace("\n", " ")


@pytest.mark.parametrize("reason", ["Boom\r| x | y | z |", "a\r\nb"])
def test_a_carriage_return_stays_inside_its_cell(reason: str) -> None:
    text = details(CompensationReport(entries=(entry(1, reason=reason),)))
    assert [len(cells) for cells in rows(text)] == [3]


def test_what_is_in_doubt_is_named_with_its_kind() -> None:
    doubts = (
        InDoubtReport("k-1", "char|ge", "timed_out"),
        InDoubtReport("k-2", "ship", "cancelled", "committer"),
    )
    text = details(CompensationReport(in_doubt=doubts))
    assert "In doubt: char\\|ge (timed_out), ship (cancelled)" in text
    assert rows(text) == []


def test_what_is_in_doubt_and_not_named_is_counted() -> None:
    doubts = tuple(InDoubtReport(f"k-{n}", "ship", "raised") for n in range(60))
    assert "10 more" in details(CompensationReport(in_doubt=doubts))


def test_an_empty_report_is_one_line() -> None:
    assert details(CompensationReport()) == "**Compensation: none**"


def test_what_a_shortened_report_omits_is_counted() -> None:
    doubts = (InDoubtReport("k-1", "ship", "raised"),)
    report = CompensationReport(entries=(entry(1),), in_doubt=doubts, omitted=7, omitted_in_doubt=9)
    text = details(report)
    assert "\nand 7 more" in text
    assert "In doubt: ship (raised), and 9 more" in text
    assert "In doubt: and 9 more" in details(CompensationReport(omitted_in_doubt=9))
