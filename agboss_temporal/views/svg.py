"""The timeline of a run as SVG: one file, no script, readable in light and in dark."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Final

from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.views import layout, looks, palette
from agboss_temporal.views.layout import Band, Layout, Placed, lay_out
from agboss_temporal.views.printable import columns_of, visible, wrap
from agboss_temporal.views.run_document import end_text
from agboss_temporal.views.timeline import Card, GapColumn, StepColumn, StopColumn, timeline

_SHEET: Final = "\n".join(
    [
        f".tl text {{ font: 12px {palette.SANS}; }}",
        f".tl .name {{ font: 600 13px {palette.MONO}; direction: ltr; unicode-bidi: isolate; }}",
        ".tl .title { font-size: 17px; font-weight: 600; }",
        ".tl .state { font-weight: 600; }",
        ".tl .card { stroke-width: 1.5; }",
        ".tl .tone-bad.card { stroke-width: 2.5; }",
        ".tl .flow, .tl .stop { fill: none; stroke-width: 1.5; }",
        ".tl .stop { stroke-width: 3; stroke-dasharray: 8 5; }",
        palette.both(
            "\n".join(
                [
                    ".tl .paper { fill: {paper}; }",
                    ".tl text { fill: {ink}; }",
                    ".tl .note { fill: {quiet}; }",
                    ".tl .card { fill: {card}; stroke: {line}; }",
                    ".tl .flow { stroke: {line}; } .tl .tip { fill: {line}; }",
                    *(
                        f".tl .{palette.tone_class(t)}.card, .tl .{palette.tone_class(t)}.stop "
                        f"{{ stroke: {{{t or 'line'}}}; }} "
                        f".tl text.{palette.tone_class(t)} {{ fill: {{{t or 'plain'}}}; }}"
                        for t in palette.TONES
                    ),
                ]
            )
        ),
    ]
)

_INSIDE: Final = 12
_LINE: Final = 17


def draw(ledger: RunLedger) -> str:
    """Draw the timeline of a run as a file of its own."""
    return "\n".join(_lines(ledger, alone=True)) + "\n"


def inline(ledger: RunLedger) -> str:
    """Draw it for a page that has a heading and the style sheet already."""
    return "\n".join(_lines(ledger, alone=False))


def style() -> str:
    """Return the style sheet of the drawing."""
    return _SHEET


def _lines(ledger: RunLedger, *, alone: bool) -> Iterator[str]:
    placed = lay_out(timeline(ledger), head=alone)
    size = f'width="{placed.width}" height="{placed.height}"'
    box = f'viewBox="0 0 {placed.width} {placed.height}"'
    title = f"{ledger.workflow_type} {ledger.workflow_id}"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" class="tl" {size} {box} role="img">'
    yield f"<title>{_text('Timeline of ' + title)}</title>"
    yield f"<desc>{_text(_summary(ledger), 1000)}</desc>"
    if alone:
        yield f"<style>\n{_SHEET}\n</style>"
    yield '<rect class="paper" width="100%" height="100%"/>'
    if alone:
        yield from _head(ledger, title, placed)
    for band in placed.bands:
        yield from _band(band)
    yield "</svg>"


def _summary(ledger: RunLedger) -> str:
    parts = [end_text(ledger), f"compensation {ledger.report.status}"]
    if ledger.entries:
        parts.append(looks.tally(entry.state for entry in ledger))
    return "; ".join(parts)


def _head(ledger: RunLedger, title: str, placed: Layout) -> Iterator[str]:
    room = placed.width - 2 * layout.MARGIN
    yield _line(layout.MARGIN, layout.MARGIN + 14, _fit(title, room // 11), "title")
    below = layout.MARGIN + 40
    yield _line(layout.MARGIN, below, _fit(_summary(ledger), room // 7), "note")


def _band(band: Band) -> Iterator[str]:
    """Draw a band: the line of time first, so that cards stand on it."""
    middle = band.top + layout.CARD_HEIGHT // 2
    left = band.columns[0].x - (0 if band.is_first else layout.MARGIN)
    last = band.columns[-1]
    right = last.x + last.width + (layout.MARGIN if band.goes_on else 0)
    yield f'<path class="flow" d="M{left} {middle}H{right}"/>'
    for placed in band.columns:
        if placed.x > left:
            yield _tip(placed.x, middle, -7, 4)
        yield from _column(placed, band)


def _column(placed: Placed, band: Band) -> Iterator[str]:
    column = placed.column
    if isinstance(column, StepColumn):
        yield from _card(placed.x, band.top, layout.CARD_HEIGHT, column.action)
        if column.undo is not None:
            yield from _undo(placed.x, band, column.undo)
    elif isinstance(column, GapColumn):
        yield from _gap(placed.x, band.top, column)
    else:
        yield from _stop(placed, band, column)


def _undo(x: int, band: Band, undo: Card) -> Iterator[str]:
    middle = x + layout.CARD_WIDTH // 2
    bottom = band.top + layout.CARD_HEIGHT
    dash = "" if undo.ran else ' stroke-dasharray="3 4"'
    yield f'<path class="flow"{dash} d="M{middle} {band.undo_top}V{bottom + 8}"/>'
    if undo.ran:
        yield f'<path class="tip" d="M{middle} {bottom + 1}l-5 9h10z"/>'
    yield from _card(x, band.undo_top, layout.UNDO_HEIGHT, undo)


def _card(x: int, y: int, height: int, card: Card) -> Iterator[str]:
    dashes = palette.DASHES.get(card.tone) or (None if card.ran else "3 4")
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    tone = palette.tone_class(card.tone)
    yield "<g>"
    yield f"<title>{_text(card.hint, 1000)}</title>"
    yield (
        f'<rect class="card {tone}" x="{x}" y="{y}" rx="6"{dash} '
        f'width="{layout.CARD_WIDTH}" height="{height}"/>'
    )
    room = (layout.CARD_WIDTH - 2 * _INSIDE) // 8
    names = _two_lines(card.name, room)
    at = y + 20
    for name in names:
        yield _line(x + _INSIDE, at, name, "name")
        at += _LINE
    yield _line(x + _INSIDE, at, _fit(card.state, room + 1), f"state {tone}")
    for note in card.notes[: (height - 18) // _LINE - len(names) - 1]:
        at += _LINE
        yield _line(x + _INSIDE, at, _fit(note, room + 3), "note")
    yield "</g>"


def _gap(x: int, y: int, gap: GapColumn) -> Iterator[str]:
    yield "<g>"
    yield f"<title>{_text(f'{gap.count} more: {gap.states}', 1000)}</title>"
    for shift in (8, 4, 0):
        yield (
            f'<rect class="card tone-quiet" x="{x + shift}" y="{y + shift}" rx="6" '
            f'width="{layout.GAP_WIDTH - 8}" height="{layout.CARD_HEIGHT - 8}"/>'
        )
    yield _line(x + _INSIDE, y + 22, f"… {gap.count} more", "state")
    for at, part in enumerate(gap.states.split(", ")[:3]):
        yield _line(x + _INSIDE, y + 40 + 15 * at, _fit(part, 15), "note")
    yield "</g>"


def _stop(placed: Placed, band: Band, stop: StopColumn) -> Iterator[str]:
    """Draw a vertical mark through the whole band, and beside it what it is."""
    tone = palette.tone_class(stop.tone)
    x = placed.x + 4
    bottom = band.top + band.height + 8
    yield "<g>"
    yield f"<title>{_text(' | '.join((stop.title, *stop.notes)), 1000)}</title>"
    yield (
        f'<rect class="paper" x="{placed.x - 2}" y="{band.top + 4}" '
        f'width="{placed.width + 4}" height="{layout.CARD_HEIGHT - 8}"/>'
    )
    yield f'<path class="stop {tone}" d="M{x} {band.top - 8}V{bottom}"/>'
    room = (placed.width - 20) // 7
    at = band.top + 20
    yield _line(x + _INSIDE, at, _fit(stop.title, room), f"state {tone}")
    lines = [line for note in stop.notes for line in _two_lines(note, room)]
    for line in lines[: band.height // _LINE - 1]:
        at += _LINE
        yield _line(x + _INSIDE, at, line, "note")
    yield "</g>"


def _two_lines(text: str, room: int) -> list[str]:
    lines = wrap(visible(text), room)
    return lines if len(lines) <= 2 else [lines[0], _fit("".join(lines[1:]), room)]


def _fit(text: str, room: int) -> str:
    """Shorten a text until it is at most so many columns wide."""
    shown = visible(text)
    if columns_of(shown) <= room:
        return shown
    return wrap(shown, max(room - 1, 1))[0] + "…"


def _line(x: int, y: int, text: str, classes: str) -> str:
    return f'<text x="{x}" y="{y}" class="{classes}">{html.escape(text)}</text>'


def _tip(x: int, y: int, dx: int, dy: int) -> str:
    return f'<path class="tip" d="M{x} {y}l{dx} {-dy}v{2 * dy}z"/>'


def _text(text: str, limit: int = 400) -> str:
    return html.escape(visible(text, limit))
