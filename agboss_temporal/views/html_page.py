"""A run as one HTML page: the timeline and the tables. No script, no font, nothing to load."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Final

from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.views import palette, svg
from agboss_temporal.views.document import Cell, Document, Table
from agboss_temporal.views.printable import visible
from agboss_temporal.views.run_document import run_document

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_SHEET: Final = "\n".join(
    [
        ":root { color-scheme: light dark; }",
        f"body {{ margin: 2rem auto; padding: 0 1.5rem; max-width: 1180px; "
        f"font: 15px/1.5 {palette.SANS}; }}",
        "h1 { font-size: 1.5rem; margin: 0 0 1rem; overflow-wrap: anywhere; }",
        "h2 { font-size: 1.1rem; margin: 2.2rem 0 0.4rem; }",
        "dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1.2rem; "
        "margin: 0 0 1.5rem; }",
        "dd { margin: 0; overflow-wrap: anywhere; }",
        ".wide { overflow-x: auto; }",
        "svg { display: block; }",
        "table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }",
        "th, td { text-align: start; vertical-align: top; padding: 0.3rem 0.9rem 0.3rem 0; "
        "overflow-wrap: anywhere; }",
        "th { font-weight: 600; white-space: nowrap; }",
        "th:first-child, td:first-child { width: 1%; padding-inline-end: 1.6rem; }",
        "td:nth-child(-n+2) { white-space: nowrap; }",
        "tbody tr { border-top: 1px solid; }",
        "p { margin: 0.4rem 0; }",
        palette.both(
            "\n".join(
                [
                    "body { background: {paper}; color: {ink}; }",
                    "dt, th, p { color: {quiet}; }",
                    "tbody tr { border-color: {line}; }",
                    *(
                        f"span.{palette.tone_class(t)} {{ color: {{{t}}}; font-weight: 600; }}"
                        for t in palette.TONES
                        if t
                    ),
                ]
            )
        ),
    ]
)


def draw(ledger: RunLedger) -> str:
    """Describe a run in one page."""
    return page(run_document(ledger), svg.inline(ledger))


def page(document: Document, drawing: str = "") -> str:
    """Write a document as a page, below a drawing."""
    return "\n".join(_lines(document, drawing)) + "\n"


def _lines(document: Document, drawing: str) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{_text(document.title)}</title>"
    yield f"<style>\n{_SHEET}\n{svg.style()}\n</style>"
    yield "</head>"
    yield "<body>"
    yield f"<h1>{_isolated(document.title)}</h1>"
    yield "<dl>"
    for label, cell in document.facts:
        yield f"<dt>{_text(label)}</dt><dd>{_cell(cell, 1000)}</dd>"
    yield "</dl>"
    if drawing:
        yield f'<div class="wide" tabindex="0" role="region" aria-label="Timeline">\n{drawing}'
        yield "</div>"
    for table in document.tables:
        if table.rows:
            yield from _table(table)
    yield "</body>"
    yield "</html>"


def _table(table: Table) -> Iterator[str]:
    yield "<section>"
    yield f"<h2>{_text(table.title)}</h2>"
    yield '<div class="wide">'
    yield "<table>"
    heads = "".join(
        f'<th scope="col" style="min-width: {column.least}ch">{_text(column.title)}</th>'
        for column in table.columns
    )
    yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        yield f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody>"
    yield "</table>"
    yield "</div>"
    if table.note:
        yield f"<p>{_text(table.note)}</p>"
    yield "</section>"


def _cell(cell: Cell, limit: int = 200) -> str:
    text = _isolated(cell.text, limit)
    return f'<span class="{palette.tone_class(cell.tone)}">{text}</span>' if cell.tone else text


def _isolated(text: str, limit: int = 400) -> str:
    """Keep the direction of a text to itself: it must not turn around what is beside it."""
    shown = _text(text, limit)
    return shown if shown.isascii() else f"<bdi>{shown}</bdi>"


def _text(text: str, limit: int = 400) -> str:
    return html.escape(visible(text, limit))
