"""Actions of every kind of result, undos of every kind of input, and workflows that fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel, SecretStr
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.common import Priority, RawValue, RetryPolicy
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, CompensationPolicy, UndoContext, action
from tests.support.acts import WORLD
from tests.support.calls import ONCE, charge, explode, note, reserve

SEEN: dict[str, list[Any]] = {}
"""What the undos of a run were given, by workflow id, in order."""


def saw(*values: Any) -> None:
    workflow_id = activity.info().workflow_id or ""
    SEEN.setdefault(workflow_id, []).extend(values)


# -- results of every kind


class Account(BaseModel):
    """Does not write what it read: the secret is masked, and it knows fewer fields."""

    name: str
    password: SecretStr


@dataclass
class Narrow:
    a: int


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


# -- inputs of every form


@dataclass
class Order:
    item: str
    lines: list[str] = field(default_factory=list)


@activity.defn
async def undo_with_args(order: Order, remark: str) -> None:
    saw(order, remark)


@action(compensate_with=undo_with_args, undo_input="args")
@activity.defn
async def do_with_args(order: Order, remark: str) -> Narrow:
    return Narrow(5)


@activity.defn
async def undo_with_context(ctx: UndoContext) -> None:
    saw(ctx, ctx.args(Order, str), ctx.args(), ctx.result(Narrow), ctx.result())


@action(compensate_with=undo_with_context, undo_input="context")
@activity.defn
async def do_with_context(order: Order, remark: str) -> Narrow:
    return Narrow(5)


@activity.defn
def undo_in_thread(ctx: UndoContext) -> None:
    saw(ctx, ctx.args(Order, str), ctx.args(), ctx.result(Narrow), ctx.result())
    WORLD.did("undo in thread")


@action(compensate_with=undo_in_thread, undo_input="context")
@activity.defn
def do_in_thread(order: Order, remark: str) -> Narrow:
    WORLD.did("do in thread")
    return Narrow(5)


@activity.defn
async def undo_with_nothing() -> None:
    WORLD.did("undo with nothing")


@action(compensate_with="undo_with_nothing", undo_input="nothing")
@activity.defn
async def do_with_nothing(order: Order, remark: str) -> Narrow:
    return Narrow(5)


@action(compensate_with=undo_with_nothing)
@activity.defn
async def do_for_no_parameters(order: Order, remark: str) -> Narrow:
    return Narrow(5)


class Desk:
    """Activities that are methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    @activity.defn(name="desk-cancel")
    async def cancel(self, booked: Narrow) -> None:
        WORLD.did(f"{self.name}: cancel {booked.a}")

    @action(compensate_with=cancel)
    @activity.defn(name="desk-book")
    async def book(self, number: int) -> Narrow:
        WORLD.did(f"{self.name}: book {number}")
        return Narrow(number)


FORMS: list[Callable[..., Any]] = [
    undo_with_args,
    do_with_args,
    undo_with_context,
    do_with_context,
    undo_in_thread,
    do_in_thread,
    undo_with_nothing,
    do_with_nothing,
    do_for_no_parameters,
]


@workflow.defn
class Takes(CompensatedWorkflow):
    """Calls one action with two arguments, changes them, fails."""

    @workflow.run
    async def run(self, called: str, private: str) -> None:
        order = Order("book", [private])
        await workflow.execute_activity(called, args=[order, "by post"], **ONCE)
        order.lines.append("changed later")
        raise ApplicationError(f"out of {private}", type="OutOfStock")


@workflow.defn
class ErrorOfActivity(CompensatedWorkflow):
    """Fails with what an activity raised."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(do_with_context, args=[Order("x"), "y"], **ONCE)
        await explode("Declined")


@workflow.defn
class Books(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity_method(Desk.book, 7, **ONCE)
        await explode()


# -- options of the undo's call

ELSEWHERE = "the-desk-that-undoes"


@activity.defn
async def take_back(value: Narrow) -> None:
    WORLD.did(f"take back on {activity.info().task_queue}")


@action(compensate_with=take_back)
@activity.defn
async def give_out() -> Narrow:
    WORLD.did(f"give out on {activity.info().task_queue}")
    return Narrow(1)


@activity.defn
async def take_back_elsewhere(value: Narrow) -> None:
    WORLD.did(f"take back on {activity.info().task_queue}")


@action(
    compensate_with=take_back_elsewhere,
    undo_options={
        "task_queue": ELSEWHERE,
        "start_to_close_timeout": timedelta(seconds=5),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(seconds=3), maximum_attempts=7, backoff_coefficient=1.5
        ),
        "priority": Priority(priority_key=5),
    },
)
@activity.defn
async def give_out_elsewhere() -> Narrow:
    return Narrow(2)


@workflow.defn
class Options(CompensatedWorkflow):
    """Calls both with a priority, on a given queue; its policy has options of its own."""

    compensation = CompensationPolicy(
        undo_options={
            "start_to_close_timeout": timedelta(seconds=9),
            "heartbeat_timeout": timedelta(seconds=4),
        }
    )

    @workflow.run
    async def run(self, queue: str | None) -> None:
        options: dict[str, Any] = {
            **ONCE,
            "task_queue": queue,
            "priority": Priority(priority_key=2),
        }
        await workflow.execute_activity(give_out, **options)
        await workflow.execute_activity(give_out_elsewhere, **options)
        await explode()


@workflow.defn
class Defaults(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(give_out, **ONCE)
        await explode()


# -- what is shown

LONG = "höchst-" + "sehr-" * 60 + "langer-Name"


@activity.defn
async def undo_long(value: Narrow) -> None:
    pass


@action(compensate_with=undo_long)
@activity.defn(name=LONG)
async def do_long() -> Narrow:
    return Narrow(1)


@workflow.defn
class Shown(CompensatedWorkflow):
    @workflow.run
    async def run(self, own_details: str) -> None:
        if own_details:
            workflow.set_current_details(own_details)
        await reserve("one")
        await reserve("two")
        await charge("three")
        await explode()


@workflow.defn
class LongName(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(do_long, **ONCE)
        await explode()


# -- what must not be shown


@activity.defn
async def undo_private(ctx: UndoContext) -> None:
    _, remark = ctx.args(Order, str)
    if remark == "broken":
        raise ApplicationError(
            f"cannot undo {ctx.args(Order, str)[0].item}", type="UndoBroken", non_retryable=True
        )


@action(compensate_with=undo_private, undo_input="context")
@activity.defn
async def do_private(order: Order, remark: str) -> Order:
    return order


@workflow.defn
class Private(CompensatedWorkflow):
    @workflow.run
    async def run(self, secret: str) -> None:
        order = Order(secret)
        await workflow.execute_activity(do_private, args=[order, "fine"], **ONCE)
        await workflow.execute_activity(do_private, args=[order, "broken"], **ONCE)
        raise ApplicationError(f"failed with {secret}", type="Original")
