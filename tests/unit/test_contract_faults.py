"""Contracts as data: all that is wrong with one is found at once, and a place is no meaning."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.workflow import ActivityConfig

from agboss_temporal import declare
from agboss_temporal.core.contract import (
    UNDO_OPTION_NAMES,
    Contract,
    ContractTable,
    Place,
    faults_of,
)
from agboss_temporal.core.errors import ContractError

PLACE = Place("shop.py", 12)


def codes(contract: Contract) -> list[str]:
    return sorted(f.code for f in faults_of(contract))


@given(
    irreversible=st.booleans(),
    undo=st.none() | st.just("release"),
    committer=st.none() | st.just("ship"),
    undo_input=st.sampled_from(["result", "args", "context", "nothing", "everything"]),
    on_unknown=st.sampled_from(["report", "undo", "guess"]),
    kind=st.sampled_from(["activity", "workflow", "nexus"]),
    options=st.sets(st.sampled_from(["task_queue", "priority", "cancellation_type", "colour"])),
)
def test_every_fault_is_found_whatever_the_others(options: set[str], **fields: Any) -> None:
    contract = Contract("reserve", undo_options=dict.fromkeys(options), place=PLACE, **fields)
    undo = fields["undo"]
    expected = []
    if fields["irreversible"] and undo:
        expected.append("action.irreversible-with-undo")
    if fields["committer"] and not undo:
        expected.append("action.committer-without-compensator")
    if fields["on_unknown"] == "undo" and undo and fields["undo_input"] == "result":
        expected.append("action.unknown-needs-input")
    bad_values = [fields["undo_input"] == "everything", fields["on_unknown"] == "guess"]
    bad_values += [fields["kind"] == "nexus", bool(options & {"cancellation_type", "colour"})]
    expected += ["action.unknown-option"] * sum(bad_values)
    assert codes(contract) == sorted(expected)


def test_several_faults_make_one_error_that_names_each_with_its_place() -> None:
    contract = Contract(
        "reserve",
        committer="ship",
        undo_options={"colour": 1, "shape": 2},
        undo_input="all",  # type: ignore[arg-type]
        place=PLACE,
    )
    error = ContractError(faults_of(contract))
    text = str(error)
    assert text.startswith("3 faults in the compensation declarations:")
    assert text.count("(shop.py:12)") == 3
    assert "[action.committer-without-compensator] reserve:" in text
    assert text.count("[action.unknown-option] reserve:") == 2
    assert "colour, shape" in text
    assert [f.code for f in error.faults] == [f.code for f in faults_of(contract)]


def test_one_fault_is_not_called_faults() -> None:
    error = ContractError(faults_of(Contract("reserve", committer="ship", place=PLACE)))
    assert str(error).startswith("1 fault in the compensation declarations:")


@given(st.builds(Place, st.text(), st.integers()), st.builds(Place, st.text(), st.integers()))
def test_equality_ignores_the_place(one: Place, other: Place) -> None:
    assert Contract("reserve", undo="release", place=one) == Contract(
        "reserve", undo="release", place=other
    )


@pytest.mark.parametrize(
    "other",
    [
        Contract("book", undo="release"),
        Contract("reserve", undo="free"),
        Contract("reserve", undo="release", committer="ship"),
        Contract("reserve", undo="release", kind="workflow"),
        Contract("reserve", undo="release", undo_input="args"),
        Contract("reserve", undo="release", undo_options={"task_queue": "q"}),
        Contract("reserve", undo="release", on_unknown="undo"),
        Contract("reserve", undo="release", no_effect_errors=("OutOfStock",)),
        Contract("reserve", undo="release", irreversible=True),
    ],
)
def test_equality_sees_everything_else(other: Contract) -> None:
    assert other != Contract("reserve", undo="release")


@pytest.mark.parametrize(
    ("contract", "is_action"),
    [
        (Contract("reserve"), False),
        (Contract("reserve", undo="release"), True),
        (Contract("reserve", irreversible=True), True),
    ],
)
def test_an_action_has_an_undo_or_none_at_all(contract: Contract, is_action: bool) -> None:
    assert contract.is_action is is_action


def test_an_undo_takes_the_options_of_the_sdk_that_are_not_the_unwinds_own() -> None:
    ours = {"cancellation_type", "activity_id", "summary", "event_groups"}
    assert set(ActivityConfig.__annotations__) - UNDO_OPTION_NAMES <= ours
    assert set(ActivityConfig.__annotations__) >= UNDO_OPTION_NAMES


def test_a_table_looks_up_by_kind_and_name() -> None:
    reserve = Contract("reserve", undo="release", committer="ship")
    order = Contract("order", kind="workflow", undo="cancel_order")
    table = ContractTable([reserve, order], ambiguous=[("activity", "charge")])
    assert table.get("activity", "reserve") is reserve
    assert table.get("workflow", "reserve") is None
    assert table.get("workflow", "order") is order
    assert table.undos == {"release", "cancel_order"}
    assert table.committers == {"ship"}
    assert table.ambiguous == {("activity", "charge")}
    assert list(table) == [reserve, order]
    assert len(table) == 2


@pytest.mark.parametrize(
    "options",
    [{"start_to_close_timeout": 30}, {"retry_policy": 3}, {"task_queue": 7}],
    ids=repr,
)
def test_an_undo_option_of_another_type_is_a_fault(options: dict[str, Any]) -> None:
    with pytest.raises(ContractError) as refusal:
        declare("reserve", compensate_with="release", undo_options=options)
    assert [f.code for f in refusal.value.faults] == ["action.unknown-option"]


def test_the_error_survives_pickling() -> None:
    error = ContractError(faults_of(Contract("reserve", committer="ship", place=PLACE)))
    back = pickle.loads(pickle.dumps(error))
    assert (back.faults, str(back)) == (error.faults, str(error))
