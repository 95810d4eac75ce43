"""Cutting a plan into parts that fit into the input of one workflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_INPUT: Final = 2 * 1024 * 1024 - 1024
"""How large one part may be in bytes, also where payloads may be larger: it is written and read
within one workflow task."""


@dataclass(frozen=True)
class Portion:
    """The first entries of what is left, and the plan that is written for them."""

    count: int
    data: bytes


def portion(
    sizes: Sequence[int], most: int, limit: int, write: Callable[[int], bytes]
) -> Portion | None:
    """Write a plan for as many of the first entries as it may have, and as fit into one input.

    Args:
        sizes: Bytes of what was recorded for each entry.
        most: How many entries a plan may have.
        limit: How many bytes a payload may have; `MAX_INPUT` holds beside it.
        write: Writes the plan of so many entries.

    Returns:
        The portion, ``None`` if not even the first entry fits.
    """
    limit = min(limit, MAX_INPUT)
    count = _first_guess(sizes[:most], limit)
    while count > 0:
        data = write(count)
        if len(data) <= limit:
            return Portion(count, data)
        count = min(count - 1, count * limit // len(data))
    return None


def _first_guess(sizes: Sequence[int], limit: int) -> int:
    """Count how many entries fit if nothing can be compressed; at least one."""
    held = 0
    for count, size in enumerate(sizes):
        held += size
        if held > limit:
            return max(1, count)
    return len(sizes)
