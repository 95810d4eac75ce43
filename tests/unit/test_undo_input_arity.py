"""An undo must take as many arguments as it will be given (rule K1, ``action.undo-input``)."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

from typing import Any

import pytest
from temporalio import activity

from agboss_temporal import UndoContext, action
from agboss_temporal.core.errors import ContractError


@activity.defn
async def undo0() -> None: ...


@activity.defn
async def undo1(one: str) -> None: ...


@activity.defn
async def undo2(one: str, two: str) -> None: ...


@activity.defn
async def undo_untyped(one, two): ...  # type: ignore[no-untyped-def]


@activity.defn
async def undo_any(*all: Any) -> None: ...


@activity.defn
async def undo_default(one: str, two: str = "") -> None: ...


class Stock:
    @activity.defn(name="method1")
    async def undo1(self, one: str) -> None: ...


@activity.defn
async def undo_context(context: UndoContext) -> None: ...


def mark(undo: Any, undo_input: Any, takes: int = 2) -> None:
    async def take2(one: str, two: str) -> str: ...
    async def take0() -> str: ...

    fn: Any = {0: take0, 2: take2}[takes]
    action(compensate_with=undo, undo_input=undo_input)(activity.defn(name="take")(fn))


FITTING = [
    (undo0, "result"),
    (undo0, "args"),
    (undo0, "context"),
    (undo0, "nothing"),
    (undo1, "result"),
    (Stock.undo1, "result"),
    (Stock().undo1, "result"),
    (undo2, "args"),
    (undo_untyped, "args"),
    (undo_default, "args"),
    (undo_any, "args"),
    (undo_any, "result"),
    (undo_context, "context"),
]
CLASHING = [
    (undo1, "args", 1, 2),
    (Stock.undo1, "args", 1, 2),
    (Stock().undo1, "args", 1, 2),
    (undo1, "nothing", 1, 0),
    (undo2, "result", 2, 1),
    (undo2, "context", 2, 1),
    (undo_untyped, "result", 2, 1),
    (undo_default, "result", 2, 1),
]


def ids(pair: Any) -> str:
    return getattr(pair, "__name__", None) or str(pair)


@pytest.mark.parametrize(("undo", "given"), FITTING, ids=ids)
def test_it_fits(undo: Any, given: str) -> None:
    mark(undo, given)


@pytest.mark.parametrize(("undo", "given", "takes", "count"), CLASHING, ids=ids)
def test_s7_it_does_not_fit_and_says_why(undo: Any, given: str, takes: int, count: int) -> None:
    with pytest.raises(ContractError) as refusal:
        mark(undo, given)
    [fault] = refusal.value.faults
    assert fault.code == "action.undo-input"
    assert f"takes {takes} argument{'s' * (takes != 1)}, not {count}" in fault.message
    assert given in fault.message


def test_an_action_without_arguments_gives_none() -> None:
    mark(undo0, "args", takes=0)
    with pytest.raises(ContractError, match=r"undo-input.*not 0"):
        mark(undo1, "args", takes=0)
