"""What the undos of a run were given, and the types that they are given it in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from temporalio import activity

SEEN: dict[str, list[Any]] = {}
"""What the undos of a run were given, by workflow id, in order."""


def saw(*values: Any) -> None:
    workflow_id = activity.info().workflow_id or ""
    SEEN.setdefault(workflow_id, []).extend(values)


@dataclass
class Narrow:
    a: int


@dataclass
class Order:
    item: str
    lines: list[str] = field(default_factory=list)
