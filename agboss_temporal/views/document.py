"""A view before it is written: facts and tables, for a terminal and for a page alike.

The texts are raw. Whoever writes them makes them fit to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agboss_temporal.views.looks import Tone


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text and its tone."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its heading.
        least: How narrow it may become in a terminal before others do.
    """

    title: str
    least: int = 8


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a heading. It is not shown if it has no rows.

    Attributes:
        title: Its heading.
        columns: Its columns.
        rows: Its rows, each with a cell for every column.
        note: A sentence below the heading.
    """

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """What is shown of a run.

    Attributes:
        title: What it is about.
        facts: What holds for the whole run, each with a label.
        tables: The rest.
    """

    title: str
    facts: tuple[tuple[str, Cell], ...] = ()
    tables: tuple[Table, ...] = field(default=())
