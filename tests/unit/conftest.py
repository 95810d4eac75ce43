"""What every test of the pure parts needs: its own registry, and modules made for it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from agboss_temporal import registry

settings.register_profile("unit", deadline=None, max_examples=100)
settings.load_profile("unit")


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    """Begin with no contracts, and give the process its own back after the test."""
    before = dict(registry._contracts)
    registry._contracts.clear()
    yield
    registry._contracts.clear()
    registry._contracts.update(before)


class Modules:
    """Writes modules of user code and imports them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._before = set(sys.modules)

    def write(self, name: str, source: str) -> Path:
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return path

    def load(self, name: str, source: str) -> ModuleType:
        self.write(name, source)
        return import_module(name)

    def forget(self) -> None:
        for name in set(sys.modules) - self._before:
            path = getattr(sys.modules[name], "__file__", None)
            if path and Path(path).is_relative_to(self.folder):
                del sys.modules[name]


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Modules(tmp_path)
    yield made
    made.forget()
