"""``@action`` and ``declare`` refuse what they can tell to be wrong, with code and place (K1)."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from temporalio import activity
from temporalio.common import RawValue

from agboss_temporal import action, declare, registry
from agboss_temporal.core.errors import ContractError
from tests.unit.conftest import Modules


@activity.defn
async def release(item: str) -> None: ...


@activity.defn
async def ship(item: str) -> str: ...


@activity.defn
async def takes_nothing() -> None: ...


async def plain(item: str) -> str: ...


@activity.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> None: ...


def codes(error: ContractError) -> list[str]:
    return [fault.code for fault in error.faults]


def refused(mark: Callable[[Any], Any]) -> ContractError:
    @activity.defn(name="reserve")
    async def reserve(item: str) -> str: ...

    known = dict(registry._contracts)
    with pytest.raises(ContractError) as refusal:
        mark(reserve)
    assert registry.contract_of(reserve) is None
    assert registry._contracts == known
    return refusal.value


def undoable() -> Callable[..., Any]:
    """An activity that has an undo itself."""

    @action(compensate_with=release)
    @activity.defn
    async def book(item: str) -> str: ...

    return book


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"committed_by": ship}, ["committer-without-compensator"]),
        ({"compensate_with": release, "irreversible": True}, ["irreversible-with-undo"]),
        ({"compensate_with": release, "on_unknown": "undo"}, ["unknown-needs-input"]),
        ({"compensate_with": plain}, ["not-an-activity"]),
        ({"compensate_with": anything}, ["not-an-activity"]),
        ({"compensate_with": release, "committed_by": plain}, ["not-an-activity"]),
        ({"compensate_with": ""}, ["not-an-activity"]),
        ({"compensate_with": release, "undo_options": {"colour": 1}}, ["unknown-option"]),
        ({"compensate_with": release, "undo_input": "all"}, ["unknown-option"]),
        ({"compensate_with": takes_nothing, "undo_input": "all"}, ["unknown-option"]),
    ],
)
def test_each_fault_has_its_code(options: dict[str, Any], expected: list[str]) -> None:
    error = refused(action(**options))
    assert codes(error) == [f"action.{code}" for code in expected]
    assert {fault.action for fault in error.faults} == {"reserve"}


def test_an_undo_is_never_undone() -> None:
    error = refused(action(compensate_with=undoable()))
    assert codes(error) == ["action.undo-is-undoable"]


def test_all_faults_are_told_at_once() -> None:
    error = refused(
        action(
            compensate_with=undoable(),
            irreversible=True,
            committed_by=plain,
            on_unknown="undo",
            undo_options={"colour": 1},
        )
    )
    assert sorted(codes(error)) == [
        "action.irreversible-with-undo",
        "action.not-an-activity",
        "action.undo-is-undoable",
        "action.unknown-needs-input",
        "action.unknown-option",
    ]
    assert all(f"[{code}]" in str(error) for code in codes(error))


def test_a_function_that_is_no_activity_is_told_so_beside_its_other_faults() -> None:
    with pytest.raises(ContractError) as refusal:
        action(committed_by=ship)(plain)
    assert codes(refusal.value) == [
        "action.not-an-activity",
        "action.committer-without-compensator",
    ]
    assert "below @action" in str(refusal.value)


@pytest.mark.parametrize(
    "target",
    [functools.partial(plain, "x"), 5, property(plain)],
    ids=["partial", "int", "property"],
)
def test_anything_else_that_is_marked_is_told_so(target: Any) -> None:
    with pytest.raises(ContractError, match="not-an-activity"):
        action(irreversible=True)(target)


def test_one_wire_type_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises((ContractError, TypeError)):
        declare("reserve", compensate_with="release", no_effect_errors="OutOfStock")


def test_the_message_says_file_and_line_of_a_function(modules: Modules) -> None:
    path = modules.write(
        "shop_function",
        """
        from temporalio import activity
        from agboss_temporal import action

        @action(committed_by="ship")
        @activity.defn
        async def reserve(item: str) -> str: ...
        """,
    )
    with pytest.raises(ContractError) as refusal:
        modules.load("shop_function", path.read_text())
    assert f"({path}:5)" in str(refusal.value)


def test_the_message_says_file_and_line_of_a_class(modules: Modules) -> None:
    path = modules.write(
        "shop_class",
        """
        from temporalio import workflow
        from agboss_temporal import action

        @action(committed_by="ship")
        @workflow.defn
        class Order:
            @workflow.run
            async def run(self) -> None: ...
        """,
    )
    with pytest.raises(ContractError) as refusal:
        modules.load("shop_class", path.read_text())
    assert f"({path}:5)" in str(refusal.value)


def test_the_message_says_file_and_line_of_a_declare(modules: Modules) -> None:
    path = modules.write(
        "shop_declare",
        """
        from agboss_temporal import declare

        declare("reserve", committed_by="ship", irreversible=True)
        """,
    )
    with pytest.raises(ContractError) as refusal:
        modules.load("shop_declare", path.read_text())
    assert f"({path}:4)" in str(refusal.value)


def test_declare_tells_all_its_faults_and_remembers_none() -> None:
    before = dict(registry._contracts)
    with pytest.raises(ContractError) as refusal:
        declare("reserve", committed_by=plain, undo_input="all")  # type: ignore[arg-type]
    assert sorted(codes(refusal.value)) == [
        "action.committer-without-compensator",
        "action.not-an-activity",
        "action.unknown-option",
    ]
    assert registry._contracts == before


@pytest.mark.parametrize(
    "errors",
    ["OutOfStock", KeyError, KeyError("x"), [KeyError("x")], [KeyError, 5], [int]],
    ids=repr,
)
def test_what_is_no_error_type_is_told_so(errors: Any) -> None:
    with pytest.raises(ContractError) as refusal:
        declare("reserve", compensate_with="release", no_effect_errors=errors)
    assert codes(refusal.value) == ["action.unknown-option"]
    assert "no_effect_errors" in str(refusal.value)
