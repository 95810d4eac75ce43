"""The private parts of the SDK that are used are there, and one that goes is named."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import temporalio.activity
import temporalio.workflow
from temporalio.worker import _workflow_instance as instance

from agboss_temporal import _compat
from tests.packaging.tree import LIBRARY, parsed

SYMBOLS: list[tuple[Any, str, str]] = [
    (temporalio.activity, "_Definition", "temporalio.activity._Definition"),
    (temporalio.workflow, "_Definition", "temporalio.workflow._Definition"),
    (instance, "_WorkflowInstanceImpl", "_workflow_instance._WorkflowInstanceImpl"),
    (instance, "_ActivityHandle", "_workflow_instance._ActivityHandle"),
    (instance, "_ChildWorkflowHandle", "_workflow_instance._ChildWorkflowHandle"),
    (temporalio.activity._Definition, "from_callable", "_Definition.from_callable"),
    (temporalio.workflow._Definition, "from_class", "_Definition.from_class"),
    (
        instance._WorkflowInstanceImpl,
        "workflow_get_current_history_length",
        "_WorkflowInstanceImpl.workflow_get_current_history_length",
    ),
    (instance._ActivityHandle, "_resolve_success", "_ActivityHandle._resolve_success"),
    (instance._ActivityHandle, "_resolve_failure", "_ActivityHandle._resolve_failure"),
    (instance._ChildWorkflowHandle, "_resolve_success", "_ChildWorkflowHandle._resolve_success"),
    (instance._ChildWorkflowHandle, "_resolve_failure", "_ChildWorkflowHandle._resolve_failure"),
]


def test_the_installed_sdk_has_them_all() -> None:
    assert _compat.verify() == []


@pytest.mark.parametrize(("owner", "name", "told"), SYMBOLS, ids=[told for *_, told in SYMBOLS])
def test_one_that_is_missing_is_named(
    owner: Any, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in getattr(owner, "__mro__", [owner]):
        if name in vars(place):
            monkeypatch.delattr(place, name)
    [missing] = _compat.verify()
    assert missing.endswith(told)


@pytest.mark.parametrize(
    ("owner", "told"),
    [
        (instance._ActivityHandle, "_ActivityHandle._result_fut"),
        (instance._ChildWorkflowHandle, "_ChildWorkflowHandle._result_fut"),
    ],
)
def test_an_attribute_that_is_no_longer_set_is_named(
    owner: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "__init__", lambda self: None)
    assert told in _compat.verify()


def test_every_private_name_that_is_used_is_looked_for() -> None:
    tree = parsed(LIBRARY[0] / "_compat.py")
    [verify] = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "verify"]
    looked_for = {
        word
        for node in ast.walk(verify)
        for word in [getattr(node, "value", None), getattr(node, "attr", None)]
        if isinstance(word, str)
    }
    own = {name for cls in [_compat.Observation] for name in vars(cls)} | {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    }
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr[1] != "_"
        if ast.unparse(node.value) != "self"
    }
    assert used - own - looked_for == set()
    assert {"_Definition", "_result_fut", "_resolve_success"} <= used | looked_for
