"""An undo must be able to read what it will be given; what it reads of less is a warning."""

from __future__ import annotations

import enum
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    computed_field,
)
from temporalio import activity

from agboss_temporal import UndoContext, action
from agboss_temporal.core.errors import ContractError
from agboss_temporal.signatures import compare


@dataclass
class Receipt:
    id: str
    amount: int


@dataclass
class Special(Receipt):
    colour: str = ""


@dataclass
class OnlyId:
    id: str


@dataclass
class NeedsMore:
    id: str
    amount: int
    currency: str


@dataclass
class Lenient:
    id: str
    currency: str = "EUR"
    tags: list[str] = field(default_factory=list)


class Model(BaseModel):
    id: str
    amount: int = 0


class Aliased(BaseModel):
    number: str = Field(alias="id")


class Written(BaseModel):
    id: str = Field(serialization_alias="ID")


class Read(BaseModel):
    number: str = Field(validation_alias="id")


class Typed(TypedDict):
    id: str


class Colour(enum.Enum):
    RED = "red"


FITS: list[tuple[Any, Any]] = [
    (Receipt, Receipt),
    (Special, Receipt),
    (Receipt, Any),
    (Any, Receipt),
    (None, Receipt),
    (Receipt, None),
    (str, str),
    (int, float),
    (float, int),
    (list[int], tuple[int, ...]),
    (set[int], list[int]),
    (Receipt, dict[str, Any]),
    (dict[str, Any], Receipt),
    (Model, dict),
    (Receipt | None, Receipt),
    (Receipt, Receipt | None),
    (type(None), Receipt | None),
    (str | int, int | str),
    (int, str | int),
    (Colour, str),
    (uuid.UUID, str),
    (datetime, str),
    (Literal["a"], str),
    (Typed, Receipt),
    (Receipt, Model),
    (OnlyId, Read),
]
NARROWER: list[tuple[Any, Any]] = [
    (Receipt, OnlyId),
    (Receipt, Lenient),
    (Model, OnlyId),
    (Receipt, Aliased),
    (Receipt | None, OnlyId),
    (str | int, str),
]
CLASHES: list[tuple[Any, Any]] = [
    (str, int),
    (int, str),
    (bool, int),
    (bytes, str),
    (str, Receipt),
    (Receipt, str),
    (Receipt, NeedsMore),
    (OnlyId, Receipt),
    (Lenient, Receipt),
    (list[Receipt], Receipt),
    (Receipt, list[Receipt]),
    (type(None), Receipt),
    (str | None, int),
    (int, str | None),
    (Aliased, Receipt),
]


@pytest.mark.parametrize(("given", "wanted"), FITS, ids=str)
def test_it_fits(given: Any, wanted: Any) -> None:
    assert compare(given, wanted) == "fits"


@pytest.mark.parametrize(("given", "wanted"), NARROWER, ids=str)
def test_it_reads_less(given: Any, wanted: Any) -> None:
    assert compare(given, wanted) == "narrower"


@pytest.mark.parametrize(("given", "wanted"), CLASHES, ids=str)
def test_it_cannot_be_read(given: Any, wanted: Any) -> None:
    assert compare(given, wanted) == "clashes"


@pytest.mark.parametrize(("given", "wanted"), [(OnlyId, Written), (Receipt, Read)], ids=str)
def test_a_model_is_read_by_its_validation_aliases(given: Any, wanted: Any) -> None:
    assert compare(given, wanted) != "clashes"


def marked(returns: Any, takes: Any, undo_input: Any = "result") -> None:
    async def undo(given: Any) -> None: ...
    async def act(item: str) -> Any: ...

    undo.__annotations__["given"] = takes
    act.__annotations__["return"] = returns
    done = activity.defn(name="undo-it")(undo)
    action(compensate_with=done, undo_input=undo_input)(activity.defn(name="do-it")(act))


def test_types_that_clash_are_a_fault_that_names_both() -> None:
    with pytest.raises(ContractError) as refusal:
        marked(Receipt, str)
    [fault] = refusal.value.faults
    assert fault.code == "action.undo-input"
    assert "'undo-it'" in fault.message
    assert "takes str and is given Receipt" in fault.message


def test_a_narrower_model_is_only_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"\[action.undo-input\] do-it: .*OnlyId.*Receipt"):
        marked(Receipt, OnlyId)


def test_an_action_that_returns_nothing_has_no_result_to_give() -> None:
    with pytest.raises(ContractError, match=r"action\.undo-input"):
        marked(None, Receipt)


def test_arguments_are_compared_with_what_is_taken() -> None:
    marked(Receipt, str, "args")


def test_arguments_that_clash_are_a_fault() -> None:
    with pytest.raises(ContractError, match="takes int and is given str"):
        marked(Receipt, int, "args")


def test_types_that_nobody_wrote_down_fit() -> None:
    async def act(item): ...  # type: ignore[no-untyped-def]
    async def undo(given): ...  # type: ignore[no-untyped-def]

    done = activity.defn(name="undo-it")(undo)
    action(compensate_with=done)(activity.defn(name="do-it")(act))


@pytest.mark.parametrize("takes", [UndoContext, dict[str, Any], Any])
def test_a_context_is_read_as_one_or_as_its_json(takes: Any) -> None:
    marked(Receipt, takes, "context")


@pytest.mark.parametrize("takes", [str, int, list[str]])
def test_a_context_is_not_read_as_anything_else(takes: Any) -> None:
    with pytest.raises(ContractError, match=r"action\.undo-input"):
        marked(Receipt, takes, "context")


@pytest.mark.parametrize("returns", [Receipt, Model, str, None])
def test_a_result_is_not_read_as_a_context(returns: Any) -> None:
    with pytest.raises(ContractError, match=r"action\.undo-input"):
        marked(returns, UndoContext)


class Flexible(BaseModel):
    number: str = Field(validation_alias=AliasChoices("nr", AliasPath("id", 0)))


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    id: str = Field(alias="ID")


class Computed(BaseModel):
    amount: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        return "r-1"


@pytest.mark.parametrize(
    ("given", "wanted"), [(OnlyId, Flexible), (OnlyId, ByName), (Computed, Receipt)], ids=str
)
def test_whatever_pydantic_reads_and_writes_counts(given: Any, wanted: Any) -> None:
    assert compare(given, wanted) == "fits"


class Items(RootModel[list[int]]): ...


def test_a_root_model_stands_for_its_root() -> None:
    assert compare(list[int], Items) == compare(Items, tuple[int, ...]) == "fits"
    assert compare(Items, Receipt) == "clashes"


@pytest.mark.parametrize("other", [UndoContext, dict, dict[str, Any], Any, None, Typed])
def test_a_context_fits_itself_and_what_may_be_its_json(other: Any) -> None:
    assert compare(UndoContext, other) == compare(other, UndoContext) == "fits"


def test_a_context_that_may_be_none_is_still_a_context() -> None:
    assert compare(UndoContext, UndoContext | None) == "fits"
    assert compare(Receipt, UndoContext | None) == "clashes"
