"""The timeline of a run as a Mermaid flowchart, for a page or an issue that renders those.

Each action is a subgraph with its undo below it, or beside it where the graph is long. A flowchart
keeps the direction inside of a subgraph only as long as no edge from outside ends at a node in it,
so the edges of the run join the subgraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.views.looks import Tone
from agboss_temporal.views.palette import DASHES, tone_class
from agboss_temporal.views.printable import shorten, visible
from agboss_temporal.views.timeline import (
    Card,
    GapColumn,
    StepColumn,
    TimelineColumn,
    timeline,
)

MOST_STEPS: Final = 40
"""How many actions are drawn one by one. Mermaid refuses texts of more than 50,000 characters."""

_WIDEST: Final = 7
"""How many columns stand side by side; more of them stand one below the other, to be scrolled."""

_LONGEST: Final = 48

_SAFE: Final = re.compile(r"[^\w ,.()/+-]")

_STROKES: Final[dict[Tone, str]] = {
    "good": "#009e73",
    "bad": "#d55e00",
    "doubt": "#c98a00",
    "open": "#cc79a7",
    "busy": "#0072b2",
    "quiet": "#8b949e",
}
"""Colours of borders only, so that both themes stay readable."""


def draw(ledger: RunLedger) -> str:
    """Draw a run as a flowchart."""
    return "\n".join(_Chart(ledger).lines()) + "\n"


class _Chart:
    def __init__(self, ledger: RunLedger) -> None:
        self._ledger = ledger
        self._classes: dict[Tone, list[str]] = {}
        self._is_wide = False

    def lines(self) -> Iterator[str]:
        columns = timeline(self._ledger, MOST_STEPS)
        self._is_wide = len(columns) > _WIDEST
        yield f"flowchart {'TB' if self._is_wide else 'LR'}"
        for number, column in enumerate(columns, 1):
            yield from (f"  {line}" for line in self._column(number, column))
        if len(columns) > 1:
            yield "  " + " --> ".join(f"c{n}" for n in range(1, len(columns) + 1))
        yield "  classDef frame fill:none,stroke:none"
        frames = [f"c{n}" for n, c in enumerate(columns, 1) if isinstance(c, StepColumn)]
        if frames:
            yield f"  class {','.join(frames)} frame"
        for tone, names in self._classes.items():
            yield f"  classDef {tone_class(tone)} {_style(tone)}"
            yield f"  class {','.join(names)} {tone_class(tone)}"

    def _column(self, number: int, column: TimelineColumn) -> Iterator[str]:
        if isinstance(column, GapColumn):
            self._toned(f"c{number}", "quiet")
            yield f"c{number}[[{_label(f'{column.count} more', column.states)}]]"
            return
        if not isinstance(column, StepColumn):
            self._toned(f"c{number}", column.tone)
            yield f"c{number}{{{{{_label(column.title, *column.notes)}}}}}"
            return
        yield f'subgraph c{number}[" "]'
        yield f"  direction {'LR' if self._is_wide else 'TB'}"
        yield f"  {self._card(f'a{number}', column.action)}"
        if column.undo is not None:
            yield f"  {self._card(f'u{number}', column.undo)}"
            yield f"  a{number} {'---' if column.undo.ran else '-.-'} u{number}"
        yield "end"

    def _card(self, name: str, card: Card) -> str:
        self._toned(name, card.tone)
        return f"{name}[{_label(card.name, card.state, *card.notes)}]"

    def _toned(self, name: str, tone: Tone) -> None:
        if tone:
            self._classes.setdefault(tone, []).append(name)


def _style(tone: Tone) -> str:
    width = "3px" if tone == "bad" else "2px"
    dashes = DASHES.get(tone)
    return f"stroke:{_STROKES[tone]},stroke-width:{width}" + (
        f",stroke-dasharray:{dashes}" if dashes else ""
    )


def _label(*lines: str) -> str:
    return f'"{"<br>".join(escaped(line) for line in lines if line) or " "}"'


def escaped(text: str) -> str:
    """Write a text so that it is nothing but text in a quoted label.

    Mermaid has its own entities: ``#60;`` is ``<``. All that could be syntax, markup or markdown
    is written as one, and a colon too, because of how Mermaid looks for styles.
    """
    return _SAFE.sub(lambda found: f"#{ord(found[0])};", shorten(visible(text), _LONGEST))
