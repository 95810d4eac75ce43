"""The shape of the code: imports point one way, pieces are small, names and paths are clean."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.tree import ROOT, docstrings, functions, modules, parsed, tracked

MAX_MODULE = 300
MAX_FUNCTION = 45

ALL = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in modules()]

LINT = "from importlinter.cli import lint_imports_command as check; check()"

UNWANTED = "sa" + "ga"
"""The word that stands in no name."""


def test_imports_point_one_way() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_every_module_has_its_place_in_the_layers() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    elsewhere = ("agboss_temporal_interceptors", "agboss_temporal.__init__")
    for path in modules():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("interceptors.")
        place = ".".join(name.split(".")[:2])
        known = name.startswith(elsewhere) or f'{place}"' in settings or f"{place} |" in settings
        assert known, name


@pytest.mark.parametrize("path", ALL)
def test_a_module_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_MODULE, f"{lines} lines"


@pytest.mark.parametrize("path", ALL)
def test_a_function_is_short(path: Path) -> None:
    """Signature and body count, a docstring does not."""
    for function in functions(path):
        first = function.body[0]
        told = ast.get_docstring(function) is not None
        text = (first.end_lineno or 0) - first.lineno + 1 if told else 0
        length = (function.end_lineno or 0) - function.lineno + 1 - text
        assert length <= MAX_FUNCTION, f"{function.name} has {length} lines"


@pytest.mark.parametrize("path", ALL)
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(parsed(path))


@pytest.mark.parametrize("path", [p for p in ALL if "_compat.py" not in str(p.id)])
def test_private_symbols_of_the_sdk_stand_in_one_place(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("temporalio"):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            assert not any(private(name) for name in names), ast.unparse(node)
        if isinstance(node, ast.Import):
            taken = [p for a in node.names if a.name.startswith("temporalio") for p in parts(a)]
            assert not any(private(name) for name in taken), ast.unparse(node)
        if isinstance(node, ast.Attribute) and private(node.attr):
            assert node.attr in own_attributes(path), ast.unparse(node)


def own_attributes(path: Path) -> set[str]:
    """The attributes and methods that the classes of a module have themselves."""
    nodes = list(ast.walk(parsed(path)))
    methods = {function.name for function in functions(path)}
    attributes = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }
    return methods | attributes


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def parts(alias: ast.alias) -> list[str]:
    return alias.name.split(".")


def names_in(tree: ast.Module) -> set[str]:
    """Identifiers, and texts that are no prose: metric names, error types, attributes."""
    told = docstrings(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.alias(name=name):
                found.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found.add(name)
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.Constant(value=str(name)) if node not in told:
                found.add(name)
            case _:
                pass
    return found


def test_one_word_stands_in_no_name() -> None:
    for path in tracked():
        assert UNWANTED not in str(path.relative_to(ROOT)).lower()
        if path.suffix == ".py":
            wrong = [name for name in names_in(parsed(path)) if UNWANTED in name.lower()]
            assert wrong == [], path


def test_the_search_for_names_finds_them() -> None:
    code = f"class My{UNWANTED.title()}: ...\nx = '{UNWANTED}_total'\ndef f({UNWANTED}): ...\n"
    tree = ast.parse(f'"""Prose on the {UNWANTED} pattern."""\n{code}')
    assert len([name for name in names_in(tree) if UNWANTED in name.lower()]) == 3


def test_no_file_names_the_machine_that_it_was_written_on() -> None:
    own = [str(ROOT), f"{Path.home()}/", *(f"/{folder}/" for folder in ("work", "home", "Users"))]
    for path in tracked():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        # The home in the image of the Temporal CLI is no home of anybody.
        text = data.decode().replace("/home/temporal", "")
        found = [word for word in own if word in text and len(word) > 3]
        assert found == [], path.relative_to(ROOT)
