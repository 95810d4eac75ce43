"""What can be marked, and that marking it leaves nothing but a contract behind."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

import pytest
from temporalio import activity, workflow

from agboss_temporal import action, declare, registry
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.errors import ContractError


@activity.defn
async def release(item: str) -> None: ...


@activity.defn
async def ship(item: str) -> str: ...


@workflow.defn(name="shipping-2")
class Shipping:
    @workflow.run
    async def run(self) -> None: ...


@workflow.defn
class Order:
    @workflow.run
    async def run(self, item: str) -> str: ...


@workflow.defn
class Special(Order):
    @workflow.run
    async def run(self, item: str) -> str: ...


def test_the_same_object_comes_back_and_only_data_is_kept() -> None:
    async def reserve(item: str) -> str: ...

    defined = activity.defn(reserve)
    marked = action(compensate_with=release, committed_by=ship)(defined)
    assert marked is defined is reserve
    assert registry.contract_of(marked) == Contract("reserve", undo="release", committer="ship")


def test_names_stand_for_callables() -> None:
    @action(compensate_with="release", committed_by="ship")
    @activity.defn
    async def reserve(item: str) -> str: ...

    assert registry.contract_of(reserve) == Contract("reserve", undo="release", committer="ship")


def test_registered_names_are_used_not_those_of_the_functions() -> None:
    @activity.defn(name="free-stock")
    async def undo(item: str) -> None: ...

    @action(compensate_with=undo, committed_by=Shipping)
    @activity.defn(name="take-stock")
    async def reserve(item: str) -> str: ...

    found = registry.contract_of(reserve)
    assert found == Contract("take-stock", undo="free-stock", committer="shipping-2")


def test_a_sync_activity_and_a_method_are_actions_like_others() -> None:
    class Stock:
        @activity.defn
        def free(self, item: str) -> None: ...

        @action(compensate_with=free)
        @activity.defn
        def reserve(self, item: str) -> str: ...

    expected = Contract("reserve", undo="free")
    assert registry.contract_of(Stock.reserve) == expected
    assert registry.contract_of(Stock().reserve) == expected


def test_a_workflow_class_is_an_action_and_its_subclass_is_not() -> None:
    marked = action(compensate_with="cancel_order")(Order)
    assert marked is Order
    try:
        expected = Contract("Order", kind="workflow", undo="cancel_order")
        assert registry.contract_of(Order) == expected
        assert registry.contract_of(Special) is None
    finally:
        delattr(Order, registry.CONTRACT_ATTRIBUTE)


def test_an_undo_without_parameters_gets_nothing_whatever_is_said() -> None:
    @activity.defn
    async def tidy() -> None: ...

    @action(compensate_with=tidy, undo_input="args", on_unknown="undo")
    @activity.defn
    async def reserve(item: str) -> str: ...

    found = registry.contract_of(reserve)
    assert found is not None
    assert found.undo_input == "nothing"


def test_error_classes_stand_for_their_wire_types() -> None:
    class OutOfStock(Exception): ...

    @action(compensate_with=release, no_effect_errors=[OutOfStock, "Closed"])
    @activity.defn
    async def reserve(item: str) -> str: ...

    found = registry.contract_of(reserve)
    assert found is not None
    assert found.no_effect_errors == ("OutOfStock", "Closed")


def test_declare_gives_the_same_contract_to_a_type_that_is_elsewhere() -> None:
    declare("Invoice", kind="workflow", compensate_with=release, committed_by="ship")
    [found] = [c for c in registry._contracts.values() if c.action == "Invoice"]
    assert found == Contract("Invoice", kind="workflow", undo="release", committer="ship")
    assert registry.is_declared("Invoice")
    assert not registry.is_declared("Nothing")


def test_a_class_that_is_an_activity_is_an_action_of_kind_activity() -> None:
    @action(compensate_with=release)
    @activity.defn
    class Reserve:
        async def __call__(self, item: str) -> str: ...

    assert registry.contract_of(Reserve()) == Contract("Reserve", undo="release")


def test_a_class_that_is_an_undo_is_given_what_its_call_takes() -> None:
    @activity.defn
    class Free:
        async def __call__(self, item: str) -> None: ...

    @action(compensate_with=Free)
    @activity.defn
    async def reserve(item: str) -> str: ...

    assert registry.contract_of(reserve) == Contract("reserve", undo="Free")


def test_a_class_that_is_an_activity_is_checked_by_its_call() -> None:
    @activity.defn
    class Free:
        def __init__(self, one: str, two: str) -> None: ...

        async def __call__(self, item: int) -> None: ...

    class Reserve:
        async def __call__(self, item: str) -> str: ...

    with pytest.raises(ContractError, match="takes int and is given str"):
        action(compensate_with=Free)(activity.defn(Reserve))
