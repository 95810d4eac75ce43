"""Where a call was made: units inside units, named by paths of ordinals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

UnitPath = tuple[int, ...]
"""The run is ``()``; every scope inside it adds one ordinal."""


def within(inner: UnitPath, outer: UnitPath) -> bool:
    """Tell whether a unit is another one or lies inside it."""
    return inner[: len(outer)] == outer


def related(one: UnitPath, other: UnitPath) -> bool:
    """Tell whether one of two units encloses the other, or both are the same."""
    return within(one, other) or within(other, one)


def path_text(path: UnitPath) -> str:
    """Write a path as records have it; empty for the run."""
    return ".".join(map(str, path))


def ended_between(inner: UnitPath, outer: UnitPath) -> Iterator[UnitPath]:
    """List the units that end when what belongs to ``inner`` is handed over to ``outer``."""
    for length in range(len(inner), len(outer), -1):
        yield inner[:length]


@dataclass(frozen=True, slots=True)
class Scope:
    """What an unwind covers: a unit and all inside it, but for the handlers at work there.

    Attributes:
        unit: The unit.
        apart: Paths of units inside it that are not covered; may change while the unwind goes on.
    """

    unit: UnitPath = ()
    apart: Collection[UnitPath] = ()

    def __contains__(self, path: UnitPath) -> bool:
        if not within(path, self.unit):
            return False
        return not any(within(path, each) for each in self.apart if not within(self.unit, each))
