"""The public names, written out, and what it costs to import them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agboss_temporal
from agboss_temporal import recovery

PUBLIC = [
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

HEAVY = ["temporalio", "pydantic", "opentelemetry", "google", "agboss_temporal_interceptors"]

CORE = sorted(
    path.stem
    for path in (Path(agboss_temporal.__file__ or "").parent / "core").glob("*.py")
    if path.stem != "__init__"
)


def fresh(code: str) -> Any:
    """Run code in an interpreter of its own and read what it prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import json, sys\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_list_of_names() -> None:
    assert agboss_temporal.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert dir(agboss_temporal) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_resolves_and_knows_that_it_is_itself(name: str) -> None:
    found = getattr(agboss_temporal, name)
    assert found.__name__ == name
    assert found.__doc__


def test_every_name_is_typed_too() -> None:
    source = Path(agboss_temporal.__file__ or "").read_text()
    block = source.split("if TYPE_CHECKING:")[1].split("__all__")[0]
    imported = {word.strip(" ,()") for line in block.splitlines() for word in line.split()}
    assert set(PUBLIC) <= imported


def test_any_other_name_is_none() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Compensate'"):
        agboss_temporal.Compensate  # noqa: B018


def test_no_name_is_that_of_a_module() -> None:
    folder = Path(agboss_temporal.__file__ or "").parent
    inside = {path.stem for path in folder.iterdir() if not path.name.startswith("_")}
    assert inside.isdisjoint(PUBLIC)


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = fresh(
        f"import agboss_temporal\nprint(json.dumps([n for n in {HEAVY!r} if n in sys.modules]))"
    )
    assert loaded == []


RECOVERY = [
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


def test_the_names_of_recovery() -> None:
    assert dir(recovery) == recovery.__all__ == RECOVERY
    for name in RECOVERY:
        found = getattr(recovery, name)
        assert found.__name__ == name
        assert found.__doc__
    with pytest.raises(AttributeError, match="has no attribute 'undo'"):
        recovery.undo  # noqa: B018


def test_importing_recovery_loads_nothing_heavy() -> None:
    loaded = fresh(
        "from agboss_temporal.recovery import Plan, RecoveryRefused\n"
        f"print(json.dumps([n for n in {HEAVY!r} if n in sys.modules]))"
    )
    assert loaded == []


def test_the_core_loads_nothing_heavy() -> None:
    loaded = fresh(
        "\n".join(f"import agboss_temporal.core.{name}" for name in CORE)
        + f"\nprint(json.dumps([n for n in {[*HEAVY, 'asyncio']!r} if n in sys.modules]))"
    )
    assert loaded == []


ORDERS = [
    "",
    "import agboss_temporal.actions",
    "import agboss_temporal.core.report",
    "import agboss_temporal.workflow",
    "import agboss_temporal.interceptors",
    "import agboss_temporal_interceptors",
    "import agboss_temporal.plugin",
    "from agboss_temporal import CompensationPlugin",
    "from agboss_temporal import report, compensate",
    "from agboss_temporal import *",
]


@pytest.mark.parametrize("first", ORDERS, ids=lambda line: line or "nothing")
def test_names_are_the_same_whatever_was_imported_first(first: str) -> None:
    kinds = fresh(
        f"{first}\n"
        "import types\n"
        "import agboss_temporal\n"
        "from agboss_temporal import action, report, compensate, declare\n"
        "names = [action, report, compensate, declare]\n"
        "assert all(isinstance(n, types.FunctionType) for n in names), names\n"
        "import agboss_temporal.plugin\n"
        "from agboss_temporal import action as again\n"
        "assert again is action is agboss_temporal.action\n"
        f"print(json.dumps([type(getattr(agboss_temporal, n)).__name__ for n in {PUBLIC!r}]))"
    )
    assert "module" not in kinds
