"""A report as a short markdown table, for the Web UI's current details."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agboss_temporal.core.report import CompensationReport

MAX_ROWS: Final = 50

_LINE_END: Final = re.compile(r"\r\n|\n|\r")


def details(report: CompensationReport) -> str:
    """Describe a report in a heading and a table of at most `MAX_ROWS` entries."""
    lines = [f"**Compensation: {report.status}**"]
    if report.trigger is not None:
        lines[0] += f" ({report.trigger})"
    if report.entries:
        lines += ["", "| action | undo | verdict |", "|---|---|---|"]
        lines += [
            f"| {_cell(e.action)} | {_cell(e.undo or '-')} | {_verdict(e.verdict, e.reason)} |"
            for e in report.entries[:MAX_ROWS]
        ]
    hidden = _hidden(report.entries, report.omitted)
    if hidden:
        lines += ["", f"and {hidden} more"]
    doubts = [f"{_cell(d.name)} ({_cell(d.kind)})" for d in report.in_doubt[:MAX_ROWS]]
    hidden = _hidden(report.in_doubt, report.omitted_in_doubt)
    if hidden:
        doubts.append(f"and {hidden} more")
    if doubts:
        lines += ["", f"In doubt: {', '.join(doubts)}"]
    return "\n".join(lines)


def _hidden(items: Sequence[object], omitted: int) -> int:
    return max(len(items) - MAX_ROWS, 0) + omitted


def _verdict(verdict: str | None, reason: str | None) -> str:
    word = verdict or "…"
    return f"{word} ({_cell(reason)})" if reason else word


def _cell(text: str) -> str:
    return _LINE_END.sub(" ", text).replace("|", "\\|")
