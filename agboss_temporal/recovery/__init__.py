"""Undoing what closed runs have left open: terminated, timed out, failed or reset, not unwound.

No workflow code is needed here, only a client; the undos run on the workers that are there::

    plan = await agboss_temporal.recovery.plan(client, "order-17")
    for undo in plan.undos:
        print(undo.undo, undo.workflow_id, undo.outcome)
    await agboss_temporal.recovery.recover(client, "order-17")

Give the client the data converter, and the plugin, of the workers. The names below are loaded on
first use, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agboss_temporal.core.errors import RecoveryRefused
    from agboss_temporal.recovery.planning import plan
    from agboss_temporal.recovery.resets import check_reset
    from agboss_temporal.recovery.starting import recover
    from agboss_temporal.recovery.sweeping import sweep
    from agboss_temporal.recovery.types import (
        Plan,
        PlannedUndo,
        Recovery,
        Sweep,
        SweptRun,
        UndoResult,
    )

__all__ = [
    "Plan",
    "PlannedUndo",
    "Recovery",
    "RecoveryRefused",
    "Sweep",
    "SweptRun",
    "UndoResult",
    "check_reset",
    "plan",
    "recover",
    "sweep",
]

_HOMES = {
    "RecoveryRefused": "agboss_temporal.core.errors",
    "check_reset": "agboss_temporal.recovery.resets",
    "plan": "agboss_temporal.recovery.planning",
    "recover": "agboss_temporal.recovery.starting",
    "sweep": "agboss_temporal.recovery.sweeping",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES.get(name, f"{__name__}.types"))
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
