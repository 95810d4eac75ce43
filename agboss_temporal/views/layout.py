"""Where each column of a timeline stands: bands from left to right, one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agboss_temporal.views.timeline import GapColumn, StepColumn, TimelineColumn

CARD_WIDTH: Final = 168
CARD_HEIGHT: Final = 86
UNDO_HEIGHT: Final = 103
STOP_WIDTH: Final = 150
GAP_WIDTH: Final = 128
BETWEEN: Final = 20
LINK: Final = 30
"""How long the arrow is from an undo up to its action."""

MARGIN: Final = 24
MAX_WIDTH: Final = 1180
MIN_WIDTH: Final = 560
HEAD_HEIGHT: Final = 64
BETWEEN_BANDS: Final = 36


@dataclass(frozen=True, slots=True)
class Placed:
    """A column and where it begins."""

    x: int
    width: int
    column: TimelineColumn


@dataclass(frozen=True, slots=True)
class Band:
    """Columns side by side.

    Attributes:
        top: Where its actions begin.
        height: Its height.
        columns: Its columns.
        goes_on: Whether there is a band below it.
        is_first: Whether there is none above it.
    """

    top: int
    height: int
    columns: tuple[Placed, ...]
    goes_on: bool
    is_first: bool

    @property
    def undo_top(self) -> int:
        """Where its undos begin."""
        return self.top + CARD_HEIGHT + LINK


@dataclass(frozen=True, slots=True)
class Layout:
    """A timeline with its size."""

    width: int
    height: int
    bands: tuple[Band, ...]


def lay_out(columns: Sequence[TimelineColumn], *, head: bool = True) -> Layout:
    """Place the columns of a timeline in as many bands as they need.

    Args:
        columns: The columns.
        head: Whether to leave room for a heading.
    """
    rows = list(_rows(columns, MAX_WIDTH - 2 * MARGIN))
    bands: list[Band] = []
    top = MARGIN + (HEAD_HEIGHT if head else 0)
    for at, row in enumerate(rows):
        height = _height(row)
        placed = tuple(_placed(row))
        bands.append(Band(top, height, placed, at < len(rows) - 1, at == 0))
        top += height + BETWEEN_BANDS
    right = max((p.x + p.width for band in bands for p in band.columns), default=0)
    width = max(right + MARGIN, MIN_WIDTH)
    return Layout(width, top - BETWEEN_BANDS + MARGIN, tuple(bands))


def _rows(columns: Sequence[TimelineColumn], room: int) -> Iterator[list[TimelineColumn]]:
    row: list[TimelineColumn] = []
    taken = 0
    for column in columns:
        needed = _width(column) + (BETWEEN if row else 0)
        if row and taken + needed > room:
            yield row
            row, taken, needed = [], 0, _width(column)
        row.append(column)
        taken += needed
    if row:
        yield row


def _placed(row: Sequence[TimelineColumn]) -> Iterator[Placed]:
    x = MARGIN
    for column in row:
        width = _width(column)
        yield Placed(x, width, column)
        x += width + BETWEEN


def _width(column: TimelineColumn) -> int:
    if isinstance(column, StepColumn):
        return CARD_WIDTH
    return GAP_WIDTH if isinstance(column, GapColumn) else STOP_WIDTH


def _height(row: Sequence[TimelineColumn]) -> int:
    undone = any(isinstance(column, StepColumn) and column.undo for column in row)
    return CARD_HEIGHT + (LINK + UNDO_HEIGHT if undone else 0)
