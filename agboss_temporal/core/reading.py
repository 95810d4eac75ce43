"""Reading JSON values as the types that a record says they have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from agboss_temporal.core.errors import RecordError

Reader: TypeAlias = Callable[[Any], Any]
"""Returns what a JSON value stands for, or raises ``TypeError`` or ``ValueError``."""


def of(*kinds: type[Any]) -> Reader:
    """Read a value of one of some types; a boolean is no number."""

    def read(value: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(f"{value!r:.100} is of type {type(value).__name__}")
        return value

    return read


def each(read: Reader) -> Reader:
    """Read a list whose items are all of one kind."""
    return lambda items: tuple(read(item) for item in of(list, tuple)(items))


def time(value: Any) -> datetime | None:
    """Read a time in ISO 8601, or none."""
    return None if value is None else datetime.fromisoformat(of(str)(value))


def counts(value: Any) -> dict[str, int]:
    """Read numbers by name."""
    return {of(str)(name): of(int)(count) for name, count in of(Mapping)(value).items()}


def record(kind: type[Any], readers: Mapping[str, Reader]) -> Reader:
    """Read a dataclass field by field; fields that it does not have are passed over.

    Args:
        kind: The dataclass; a field without a default must be there.
        readers: How to read a field, by its declared type.

    Returns:
        A reader that raises ``RecordError`` for whatever is wrong.
    """

    def read(data: Any) -> Any:
        try:
            of(Mapping)(data)
            fields = [f for f in dataclasses.fields(kind) if f.name in data]
            return kind(**{f.name: readers[str(f.type)](data[f.name]) for f in fields})
        except (TypeError, ValueError) as err:
            raise RecordError(f"not a {kind.__name__}: {err}") from err

    return read
