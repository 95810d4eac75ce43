"""Actions with results of every kind, each given to its undo as it was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel, SecretStr
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.common import RawValue

from agboss_temporal import CompensatedWorkflow, action
from tests.integration.undo_input_seen import Narrow, saw
from tests.support.calls import ONCE, explode, note


class Account(BaseModel):
    """Does not write what it read: the secret is masked, and it knows fewer fields."""

    name: str
    password: SecretStr


@dataclass
class Basket:
    items: list[str] = field(default_factory=list)


RAW_ACCOUNT = b'{ "password": "s3cret", "name":"ann","since" : 2020 }'
RAW_NUMBERS = b'{"price": 1.10, "big":1E2, "accent":"\\u00e9" , "one":1}'


def as_json(data: bytes) -> Any:
    """A result as another language might have written it."""
    return RawValue(Payload(metadata={"encoding": b"json/plain", "who": b"go"}, data=data))


@activity.defn
async def keep_account(value: Account) -> None:
    saw(value)


@action(compensate_with=keep_account)
@activity.defn
async def give_account() -> Account:
    return cast(Account, as_json(RAW_ACCOUNT))


@activity.defn
async def keep_unknown_fields(value: dict[str, Any]) -> None:
    saw(value)


@action(compensate_with=keep_unknown_fields)
@activity.defn
async def give_unknown_fields() -> Narrow:
    return cast(Narrow, {"a": 1, "new_field": {"deep": [1, 2]}})


@activity.defn
async def keep_narrow(value: Narrow) -> None:
    saw(value)


@action(compensate_with=keep_narrow)
@activity.defn
async def give_narrow() -> Narrow:
    return cast(Narrow, {"a": 1, "new_field": "x"})


@activity.defn
async def keep_decimal(value: Decimal) -> None:
    saw(value)


@action(compensate_with=keep_decimal)
@activity.defn
async def give_decimal() -> Decimal:
    return Decimal("1.10")


@activity.defn
async def keep_uuid(value: UUID) -> None:
    saw(value)


@action(compensate_with=keep_uuid)
@activity.defn
async def give_uuid() -> UUID:
    return UUID(int=7)


@activity.defn
async def keep_bytes(value: bytes) -> None:
    saw(value)


@action(compensate_with=keep_bytes)
@activity.defn
async def give_bytes() -> bytes:
    return b"\x00\xff\x80"


@activity.defn
async def keep_none(value: str | None) -> None:
    saw(value)


@action(compensate_with=keep_none)
@activity.defn
async def give_none() -> str | None:
    return None


@activity.defn
async def keep_int(value: int) -> None:
    saw(value)


@action(compensate_with=keep_int)
@activity.defn
async def give_int() -> int:
    return 2**60 + 1


@activity.defn
async def keep_message(value: WorkflowExecution) -> None:
    saw(value)


@action(compensate_with=keep_message)
@activity.defn
async def give_message() -> WorkflowExecution:
    return WorkflowExecution(workflow_id="w", run_id="r")


@activity.defn
async def keep_basket(value: Basket) -> None:
    saw(value)


@action(compensate_with=keep_basket)
@activity.defn
async def give_basket() -> Basket:
    return Basket(["original"])


@activity.defn
async def keep_numbers(value: dict[str, Any]) -> None:
    saw(value)


@action(compensate_with=keep_numbers)
@activity.defn
async def give_numbers() -> dict[str, Any]:
    return cast(dict[str, Any], as_json(RAW_NUMBERS))


RESULTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "account": (give_account, keep_account),
    "unknown_fields": (give_unknown_fields, keep_unknown_fields),
    "narrow": (give_narrow, keep_narrow),
    "decimal": (give_decimal, keep_decimal),
    "uuid": (give_uuid, keep_uuid),
    "bytes": (give_bytes, keep_bytes),
    "none": (give_none, keep_none),
    "int": (give_int, keep_int),
    "message": (give_message, keep_message),
    "basket": (give_basket, keep_basket),
    "numbers": (give_numbers, keep_numbers),
}


@workflow.defn
class Gives(CompensatedWorkflow):
    """Has one result, changes it, fails."""

    @workflow.run
    async def run(self, case: str, by_name: bool) -> None:
        give, _ = RESULTS[case]
        called: Any = f"give_{case}" if by_name else give
        value = await workflow.execute_activity(called, **ONCE)
        await note(type(value).__name__)
        if isinstance(value, Basket):
            value.items.append("changed later")
        if isinstance(value, dict):
            value.clear()
        await explode()
