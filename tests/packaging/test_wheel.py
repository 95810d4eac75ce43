"""What the wheel holds: both packages, typed, whole, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.packaging.tree import ROOT, modules

NEEDED = ["pyproject.toml", "README.md", "LICENSE", "agboss_temporal", "interceptors", "tests"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """Build it from a copy, so that the checkout stays clean."""
    copy = tmp_path_factory.mktemp("source")
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "made", "."],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = (copy / "made").iterdir()
    with ZipFile(made) as opened:
        yield opened


def test_its_top_level_names_are_ours_alone(wheel: ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    info = [name for name in tops if name.endswith(".dist-info")]
    assert len(info) == 1
    assert info[0].startswith("agboss_temporal-")
    assert tops == {"agboss_temporal", "agboss_temporal_interceptors", *info}


def test_both_packages_are_typed_and_whole(wheel: ZipFile) -> None:
    names = set(wheel.namelist())
    assert {"agboss_temporal/py.typed", "agboss_temporal_interceptors/py.typed"} <= names
    expected = {
        path.relative_to(ROOT).as_posix().removeprefix("interceptors/") for path in modules()
    }
    assert {name for name in names if name.endswith(".py")} == expected


def test_its_metadata_says_what_it_needs_and_what_it_is(wheel: ZipFile) -> None:
    [path] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(wheel.read(path).decode())
    assert metadata["Name"] == "agboss-temporal"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    needs = {
        need.split(";")[0] for need in metadata.get_all("Requires-Dist", []) if "extra" not in need
    }
    assert {need.split(">")[0].split("<")[0] for need in needs} == {
        "temporalio",
        "pydantic",
        "opentelemetry-api",
    }


def test_it_works_without_the_checkout(wheel: ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "site")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import agboss_temporal, agboss_temporal_interceptors\n"
        "for name in agboss_temporal.__all__: getattr(agboss_temporal, name)\n"
        "print(agboss_temporal.__file__, agboss_temporal_interceptors.__file__, sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "site")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(Path(line).is_relative_to(tmp_path) for line in done.stdout.splitlines())
