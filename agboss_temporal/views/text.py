"""A view for a terminal: plain text, at most so many columns wide, coloured on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.views.document import Cell, Column, Document, Table
from agboss_temporal.views.looks import Tone
from agboss_temporal.views.printable import columns_of, pad, visible, wrap
from agboss_temporal.views.run_document import run_document

WIDTH: Final = 100

_INDENT: Final = "  "
_BOLD: Final = "1"
_CODES: Final[dict[Tone, str]] = {
    "good": "32",
    "bad": "1;31",
    "doubt": "33",
    "open": "35",
    "busy": "36",
    "quiet": "2",
}


def draw(ledger: RunLedger, *, width: int = WIDTH, colour: bool = False) -> str:
    """Describe a run in plain text.

    Args:
        ledger: The run.
        width: How many columns it may take.
        colour: Whether to add ANSI colours.
    """
    return write(run_document(ledger), width=width, colour=colour)


def write(document: Document, *, width: int = WIDTH, colour: bool = False) -> str:
    """Write a document as plain text."""
    pen = _Pen(colour)
    lines = [pen.paint(line, _BOLD) for line in wrap(visible(document.title), width)]
    lines += _facts(document, width, pen)
    for table in document.tables:
        if table.rows:
            lines += ["", *_table(table, width, pen)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


class _Pen:
    """Adds colours, or does not."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def paint(self, text: str, code: str | None) -> str:
        if not self._colour or not code or not text.strip():
            return text
        return f"\x1b[{code}m{text}\x1b[0m"

    def tone(self, text: str, tone: Tone) -> str:
        return self.paint(text, _CODES.get(tone))


def _facts(document: Document, width: int, pen: _Pen) -> Iterator[str]:
    label_width = max((len(label) for label, _ in document.facts), default=0)
    room = max(width - len(_INDENT) - label_width - 2, 20)
    for label, cell in document.facts:
        for at, line in enumerate(wrap(visible(cell.text, 1000), room)):
            shown = pad(label if at == 0 else "", label_width)
            yield f"{_INDENT}{shown}  {pen.tone(line, cell.tone)}"


def _table(table: Table, width: int, pen: _Pen) -> Iterator[str]:
    yield from (pen.paint(line, _BOLD) for line in wrap(visible(table.title), width))
    texts = [[visible(cell.text) for cell in row] for row in table.rows]
    widths = _widths(table.columns, texts, width - len(_INDENT))
    heads = [Cell(column.title, "quiet") for column in table.columns]
    for row, cells in zip([heads, *table.rows], [[h.text for h in heads], *texts], strict=True):
        yield from _row(row, cells, widths, pen)
    if table.note:
        yield from (_INDENT + line for line in wrap(visible(table.note), width - len(_INDENT)))


def _row(
    row: Sequence[Cell], texts: Sequence[str], widths: Sequence[int], pen: _Pen
) -> Iterator[str]:
    wrapped = [wrap(text, width) for text, width in zip(texts, widths, strict=True)]
    for at in range(max(map(len, wrapped))):
        line = [
            pen.tone(pad(lines[at] if at < len(lines) else "", width), cell.tone)
            for cell, lines, width in zip(row, wrapped, widths, strict=True)
        ]
        yield _INDENT + "  ".join(line)


def _widths(columns: Sequence[Column], texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """Give each column what it needs, and take from the widest what is not there."""
    widths = [
        max(len(column.title), *(columns_of(row[at]) for row in texts))
        for at, column in enumerate(columns)
    ]
    room -= 2 * (len(columns) - 1)
    least = [min(width, column.least) for width, column in zip(widths, columns, strict=True)]
    while sum(widths) > room:
        spare = [width - low for width, low in zip(widths, least, strict=True)]
        if not any(spare):
            least = [min(low, 4) for low in least]
            if all(width <= low for width, low in zip(widths, least, strict=True)):
                break
            continue
        widths[spare.index(max(spare))] -= 1
    return widths
