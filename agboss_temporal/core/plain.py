"""Records as plain JSON values, without any payload."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any, Final

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import State
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.scope import path_text

_PAYLOADS: Final = {"result", "args"}

_CONTRACT: Final = ("action", "kind", "undo", "committer", "undo_input", "on_unknown")


def plain(value: Any) -> Any:
    """Write a record, and what it holds, as plain JSON values."""
    if isinstance(value, CompensationReport):
        return value.to_dict()
    if isinstance(value, Contract):
        names = {name: getattr(value, name) for name in _CONTRACT}
        return {**names, "irreversible": value.irreversible}
    if dataclasses.is_dataclass(value):
        return {
            f.name: _field(f.name, getattr(value, f.name))
            for f in dataclasses.fields(value)
            if f.name not in _PAYLOADS
        }
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, State) else value


def _field(name: str, value: Any) -> Any:
    if name == "unit" and isinstance(value, tuple):
        return path_text(value)
    return plain(value)
