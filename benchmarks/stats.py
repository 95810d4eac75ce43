"""Medians with their spread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Spread:
    """A median, and the least and the greatest of what it was taken from."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Take it from values, of which there must be one at least."""
        found = sorted(values)
        return cls(median(found), found[0], found[-1])

    def text(self, digits: int) -> str:
        """Write it for a table."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} … {self.high:.{digits}f})"


def ratios(over: Iterable[float], under: Iterable[float]) -> Spread:
    """Compare two series pair by pair: what was measured close together is divided."""
    return Spread.of(a / b for a, b in zip(over, under, strict=True))
