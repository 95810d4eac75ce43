"""Which modules a worker's code imports: what it names, not what others put on its packages."""

from __future__ import annotations

import functools
import types

import pytest

from agboss_temporal.reach import reachable
from tests.unit.conftest import Modules

TARGET = "class Order: ...\n"


@pytest.fixture
def firm(modules: Modules) -> Modules:
    """A package whose modules have all been imported by somebody."""
    modules.write("firm.__init__", "")
    modules.write("firm.inner.__init__", "")
    for name in ("firm.north", "firm.south", "firm.inner.deep"):
        modules.load(name, "")
    return modules


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import firm", set()),
        ("import firm.north", {"firm.north"}),
        ("import firm.inner.deep", {"firm.inner", "firm.inner.deep"}),
        ("import os, firm.south as s, firm.north", {"firm.south", "firm.north"}),
        ("from firm import north", {"firm.north"}),
        ("from firm import south as s", {"firm.south"}),
        ("from firm.inner import deep", {"firm.inner.deep"}),
        ("def later():\n    import firm.north\nimport firm", {"firm.north"}),
        ("text = 'firm.north'\nimport firm", set()),
    ],
)
def test_a_module_reaches_what_it_names(firm: Modules, statement: str, expected: set[str]) -> None:
    order = firm.load("order", f"{statement}\n{TARGET}").Order
    assert reachable([order]) - {"order", "firm"} == expected


@pytest.mark.parametrize(
    "statement",
    [
        "from . import activities",
        "from .activities import reserve",
        "from .activities import ITEMS",
        "from .activities import *",
        "from shop import activities",
        "from shop.activities import ITEMS",
        "import shop.activities",
        "import shop.activities as acts",
    ],
)
def test_a_package_reaches_the_submodules_that_it_imports_itself(
    modules: Modules, statement: str
) -> None:
    modules.write("shop.activities", "ITEMS = 1\ndef reserve(): ...\n")
    modules.write("shop.__init__", statement)
    modules.load("shop.other", "")
    order = modules.load("order", f"import shop\n{TARGET}").Order
    assert reachable([order]) == {"order", "shop", "shop.activities"}


def test_without_a_source_everything_may_be_meant(
    firm: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = firm.load("order", f"import firm.north\n{TARGET}")
    monkeypatch.setattr(order, "__spec__", None)
    everything = {"order", "firm", "firm.north", "firm.south", "firm.inner"}
    assert reachable([order.Order]) == {"order", "firm", "firm.north"}
    monkeypatch.setattr(order, "__loader__", None)
    assert reachable([order.Order]) == everything
    loader = types.SimpleNamespace(get_source=lambda name: "import firm. or not")
    monkeypatch.setattr(order, "__loader__", loader)
    assert reachable([order.Order]) == everything


def test_what_has_no_module_does_no_harm(modules: Modules) -> None:
    order = modules.load("order", TARGET)
    nameless = types.ModuleType("nameless")
    vars(nameless)["__name__"] = None
    vars(order).update(nameless=nameless, made=types.FunctionType(reachable.__code__, {}))
    assert reachable([order.Order, functools.partial(print), 5, None]) == {"order"}
