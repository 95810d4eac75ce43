"""A report as a short markdown table, for the Web UI's current details."""

from __future__ import annotations

from typing import Final

from agboss_temporal.core.report import CompensationReport

MAX_ROWS: Final = 50


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
    hidden = len(report.entries) - MAX_ROWS
    if hidden > 0:
        lines += ["", f"and {hidden} more"]
    if report.in_doubt:
        names = ", ".join(f"{_cell(d.name)} ({d.kind})" for d in report.in_doubt[:MAX_ROWS])
        lines += ["", f"In doubt: {names}"]
    return "\n".join(lines)


def _verdict(verdict: str | None, reason: str | None) -> str:
    word = verdict or "…"
    return f"{word} ({_cell(reason)})" if reason else word


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
