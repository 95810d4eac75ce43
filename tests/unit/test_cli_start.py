"""The command line before a command runs: help, mistakes."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from agboss_temporal.cli import execute
from agboss_temporal.cli.commands import COMMANDS

HEAVY = ("temporalio", "google.protobuf", "pydantic", "asyncio")
PROBE = """
import sys
from agboss_temporal.cli import execute
try:
    execute(sys.argv[1:])
except SystemExit as end:
    code = end.code or 0
print("code", code, *(name for name in {heavy!r} if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        ([], 2),
        (["no-such-command"], 2),
        (["status"], 2),
        (["status", "w", "--format", "pdf"], 2),
        *((([command.name, "--help"]), 0) for command in COMMANDS),
    ],
)
def test_help_and_mistakes_load_nothing_heavy(arguments: list[str], code: int) -> None:
    probe = PROBE.format(heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", probe, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"code {code}"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["status"], "either WORKFLOW_ID or --history"),
        (["status", "w", "--history", "f"], "either WORKFLOW_ID or --history"),
        (["status", "--history", "f", "--watch"], "look at a server"),
        (["status", "--history", "f", "--run-id", "r"], "look at a server"),
        (["status", "w", "--watch", "--interval", "0"], "greater than 0"),
        (["status", "w", "--codec", "a:b", "--data-converter", "a:b"], "not allowed with"),
        (["status", "w", "--name", "x"], "unrecognized arguments"),
    ],
)
def test_a_mistake_is_told(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        execute(arguments)
    assert end.value.code == 2
    assert told in capsys.readouterr().err


def test_the_script_that_is_installed_is_there() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    module, _, name = settings["project"]["scripts"]["agboss-temporal"].partition(":")
    assert callable(getattr(import_module(module), name))


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        execute(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("agboss-temporal 0.")
