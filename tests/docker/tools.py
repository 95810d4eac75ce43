"""The files of the stack, and the programs that check them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docker"
DASHBOARD = FOLDER / "grafana" / "dashboards" / "compensation.json"
COMPOSE_BINARY = "docker-compose"
COMPOSE = {
    "compose": ["compose.yaml"],
    "durable": ["compose.yaml", "compose.durable.yaml"],
}

VARIABLES = {"__interval": "1m", "__range": "5m", "namespace": ".*", "task_queue": ".*"}
"""What Grafana puts in place of its variables."""


def tool(name: str) -> str:
    """Find a program beside the interpreter or on PATH; skip the test where there is none."""
    if name == COMPOSE_BINARY:
        # Not the script that the package installs: that exits with 0 whatever happens.
        inside = Path(sysconfig.get_path("purelib")) / "compose" / name
        found = str(inside) if inside.exists() else None
    else:
        beside = Path(sysconfig.get_path("scripts")) / name
        found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: make lint-docker gets it")
    return found


def run(name: str, *arguments: str, folder: Path = FOLDER) -> str:
    """Run a program and return what it prints; it must succeed."""
    done = subprocess.run(
        [tool(name), *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def composed(variant: str) -> dict[str, Any]:
    """Return what the real Docker Compose makes of the files."""
    files = [each for name in COMPOSE[variant] for each in ("--file", name)]
    text = run(COMPOSE_BINARY, *files, "--profile", "app", "config", "--format", "json")
    found: dict[str, Any] = json.loads(text)
    return found


def panels() -> dict[str, dict[str, Any]]:
    """Return the panels of the dashboard by title."""
    found = json.loads(DASHBOARD.read_text())["panels"]
    return {panel["title"]: panel for panel in found if panel["type"] != "row"}


def queries() -> Iterator[tuple[str, str]]:
    """Return the titles of the panels, each with a query as Grafana sends it to Prometheus."""
    for title, panel in panels().items():
        for target in panel["targets"]:
            if target["datasource"]["type"] == "prometheus":
                yield title, re.sub(r"\$(\w+)", lambda m: VARIABLES[m[1]], target["expr"])
