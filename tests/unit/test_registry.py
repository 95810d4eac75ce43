"""Which contracts a worker knows: names belong to task queues, and importing twice is nothing."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest

from agboss_temporal import registry
from agboss_temporal.core.contract import Contract, Kind
from tests.unit.conftest import Modules

RESERVE = """
    from temporalio import activity
    from agboss_temporal import action

    @activity.defn
    async def {undo}(item: str) -> None: ...

    @action(compensate_with={undo})
    @activity.defn
    async def reserve(item: str) -> str: ...
"""

WORKFLOW = """
    from temporalio import workflow
    {imports}

    @workflow.defn
    class Order:
        @workflow.run
        async def run(self) -> None: ...
"""


def reserve_with(undo: str) -> str:
    return RESERVE.format(undo=undo)


def workflow_with(imports: str) -> str:
    return WORKFLOW.format(imports=imports)


def undo_of(table: Any, name: str, kind: Kind = "activity") -> str | None:
    contract = table.get(kind, name)
    return None if contract is None else str(contract.undo)


def test_importing_a_module_again_grows_nothing(modules: Modules) -> None:
    shop = modules.load(
        "shop",
        reserve_with("release") + "\n    from agboss_temporal import declare\n"
        "    declare('Ship', compensate_with=release)\n    declare('Bill', irreversible=True)\n",
    )
    before = dict(registry._contracts)
    for _ in range(3):
        importlib.reload(shop)
    sys.modules.pop("shop")
    importlib.import_module("shop")
    assert registry._contracts == before
    assert len([c for c in before.values() if c.action in ("reserve", "Ship", "Bill")]) == 3


def test_a_contract_keeps_no_code_alive(modules: Modules) -> None:
    modules.load("shop", reserve_with("release"))
    [contract] = [c for c in registry._contracts.values() if c.action == "reserve"]
    values = [getattr(contract, name) for name in Contract.__dataclass_fields__]
    assert not any(callable(v) or isinstance(v, types.ModuleType) for v in values)


def test_a_worker_knows_what_it_registers(modules: Modules) -> None:
    shop = modules.load("shop", reserve_with("release"))
    modules.load("other", reserve_with("free"))
    table, faults = registry.select([shop.reserve, shop.release], [])
    assert faults == []
    assert undo_of(table, "reserve") == "release"
    assert table.ambiguous == frozenset()


@pytest.mark.parametrize(
    "imports", ["import shop", "from shop import reserve", "import shop as s", "import middle"]
)
def test_a_workflow_worker_knows_what_its_modules_import(modules: Modules, imports: str) -> None:
    modules.load("shop", reserve_with("release"))
    modules.load("other", reserve_with("free"))
    modules.load("middle", "from shop import release")
    order = modules.load("order", workflow_with(imports)).Order
    table, faults = registry.select([], [order])
    assert faults == []
    assert undo_of(table, "reserve") == "release"


def test_two_workers_of_one_process_may_mean_different_things(modules: Modules) -> None:
    one = modules.load("shop", reserve_with("release"))
    other = modules.load("other", reserve_with("free"))
    for module, undo in ((one, "release"), (other, "free")):
        table, faults = registry.select([module.reserve], [])
        assert (undo_of(table, "reserve"), faults) == (undo, [])


def test_the_only_contract_of_the_process_holds_where_nothing_nearer_does(
    modules: Modules,
) -> None:
    modules.load("shop", reserve_with("release"))
    order = modules.load("order", workflow_with("")).Order
    table, faults = registry.select([], [order])
    assert (undo_of(table, "reserve"), faults) == ("release", [])


def test_a_name_that_nothing_decides_is_ambiguous_and_not_guessed(modules: Modules) -> None:
    modules.load("shop", reserve_with("release"))
    modules.load("other", reserve_with("free"))
    order = modules.load("order", workflow_with("")).Order
    table, faults = registry.select([], [order])
    assert faults == []
    assert table.get("activity", "reserve") is None
    assert table.ambiguous == {("activity", "reserve")}


def test_contracts_that_one_worker_would_mix_are_a_conflict_with_both_places(
    modules: Modules,
) -> None:
    one = modules.load("shop", reserve_with("release"))
    other = modules.load("other", reserve_with("free"))
    order = modules.load("order", workflow_with("import shop, other")).Order
    _, faults = registry.select([], [order])
    [fault] = faults
    assert (fault.code, fault.action) == ("action.conflicting-contract", "reserve")
    assert f"{one.__file__}:8" in str(fault)
    assert f"{other.__file__}:8" in str(fault)


def test_a_declaration_that_contradicts_what_the_worker_registers_is_a_conflict(
    modules: Modules,
) -> None:
    shop = modules.load(
        "shop",
        reserve_with("release")
        + "\n    from agboss_temporal import declare\n"
        + "    declare('reserve', compensate_with='free')\n",
    )
    _, faults = registry.select([shop.reserve], [])
    assert [f.code for f in faults] == ["action.conflicting-contract"]


def test_what_the_worker_registers_wins_over_what_its_modules_only_import(
    modules: Modules,
) -> None:
    modules.load("other", reserve_with("free"))
    shop = modules.load("shop", "    import other\n" + reserve_with("release"))
    table, faults = registry.select([shop.reserve], [])
    assert (undo_of(table, "reserve"), faults) == ("release", [])


def test_what_is_marked_inside_a_function_counts_only_where_it_is_registered(
    modules: Modules,
) -> None:
    shop = modules.load(
        "shop",
        """
        from temporalio import activity
        from agboss_temporal import action

        def made():
            @action(compensate_with="release")
            @activity.defn
            async def reserve(item: str) -> str: ...
            return reserve
        """,
    )
    made = shop.made()
    order = modules.load("order", workflow_with("import shop")).Order
    assert registry.select([], [order])[0].get("activity", "reserve") is None
    assert undo_of(registry.select([made], [order])[0], "reserve") == "release"


@pytest.mark.parametrize("reached", [True, False])
def test_an_undo_that_is_undone_is_a_fault_of_the_worker_that_reaches_it(
    modules: Modules, reached: bool
) -> None:
    modules.load(
        "shop",
        """
        from agboss_temporal import declare

        declare("reserve", compensate_with="release")
        declare("release", compensate_with="reserve_again")
        """,
    )
    order = modules.load("order", workflow_with("import shop" if reached else "")).Order
    _, faults = registry.select([], [order])
    assert [f.code for f in faults] == ["action.undo-is-undoable"] * reached


def test_the_same_contract_twice_is_no_conflict(modules: Modules) -> None:
    modules.load("shop", reserve_with("release"))
    modules.load("other", reserve_with("release"))
    order = modules.load("order", workflow_with("import shop, other")).Order
    table, faults = registry.select([], [order])
    assert (undo_of(table, "reserve"), faults) == ("release", [])


def test_kinds_are_apart(modules: Modules) -> None:
    shop = modules.load(
        "shop",
        reserve_with("release")
        + "\n    from agboss_temporal import declare\n"
        + "    declare('reserve', kind='workflow', compensate_with='free')\n",
    )
    table, faults = registry.select([shop.reserve], [])
    assert faults == []
    assert undo_of(table, "reserve") == "release"
    assert undo_of(table, "reserve", "workflow") == "free"


def test_methods_and_bound_methods_are_known_too(modules: Modules) -> None:
    shop = modules.load(
        "shop",
        """
        from temporalio import activity
        from agboss_temporal import action

        class Stock:
            @activity.defn
            async def free(self, item: str) -> None: ...

            @action(compensate_with=free)
            @activity.defn
            async def reserve(self, item: str) -> str: ...
        """,
    )
    modules.load("other", reserve_with("release"))
    table, faults = registry.select([shop.Stock().reserve], [])
    assert (undo_of(table, "reserve"), faults) == ("free", [])


def test_the_modules_of_one_package_are_apart(modules: Modules) -> None:
    modules.write("firm.__init__", "")
    modules.load("firm.north", reserve_with("release"))
    modules.load("firm.south", reserve_with("free"))
    order = modules.load("firm.order", workflow_with("import firm.north")).Order
    table, faults = registry.select([], [order])
    assert faults == []
    assert undo_of(table, "reserve") == "release"


def test_a_function_without_a_module_does_no_harm(modules: Modules) -> None:
    shop = modules.load(
        "shop",
        reserve_with("release")
        + "\n    import types\n    made = types.FunctionType(reserve.__code__, {})\n",
    )
    table, _ = registry.select([shop.reserve], [])
    assert undo_of(table, "reserve") == "release"
