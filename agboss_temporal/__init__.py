"""Declared compensation for Temporal.

An activity names its undo once; when a run fails or is cancelled, what it did is undone, newest
first, bounded, with the workflow's history as the record. The names below are loaded on first use,
so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agboss_temporal.actions import action, declare
    from agboss_temporal.core.errors import ContractError
    from agboss_temporal.core.report import CompensationReport
    from agboss_temporal.exceptions import (
        CompensationFailedError,
        JoinFailedError,
        LimitExceededError,
        UncommittedActionError,
    )
    from agboss_temporal.idempotency import idempotency_key
    from agboss_temporal.plugin import CompensationPlugin
    from agboss_temporal.policy import CompensationPolicy
    from agboss_temporal.undo_context import UndoContext
    from agboss_temporal.workflow import CompensatedWorkflow, compensate, join, report, unit

__all__ = [
    "CompensatedWorkflow",
    "CompensationFailedError",
    "CompensationPlugin",
    "CompensationPolicy",
    "CompensationReport",
    "ContractError",
    "JoinFailedError",
    "LimitExceededError",
    "UncommittedActionError",
    "UndoContext",
    "action",
    "compensate",
    "declare",
    "idempotency_key",
    "join",
    "report",
    "unit",
]

_HOMES = {
    "CompensatedWorkflow": "workflow",
    "CompensationFailedError": "exceptions",
    "CompensationPlugin": "plugin",
    "CompensationPolicy": "policy",
    "CompensationReport": "core.report",
    "ContractError": "core.errors",
    "JoinFailedError": "exceptions",
    "LimitExceededError": "exceptions",
    "UncommittedActionError": "exceptions",
    "UndoContext": "undo_context",
    "action": "actions",
    "compensate": "workflow",
    "declare": "actions",
    "idempotency_key": "idempotency",
    "join": "workflow",
    "report": "workflow",
    "unit": "workflow",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
