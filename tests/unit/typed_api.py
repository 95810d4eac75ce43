"""What a type checker sees of the public names. Checked by ``mypy --strict``, never run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, assert_type

from temporalio import activity, workflow

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPlugin,
    CompensationPolicy,
    CompensationReport,
    UndoContext,
    action,
    compensate,
    declare,
    idempotency_key,
    report,
)


class Reservation: ...


@activity.defn
async def release(reservation: Reservation) -> None: ...


@action(compensate_with=release, committed_by="ship")
@activity.defn
async def reserve(item: str, count: int) -> Reservation:
    return Reservation()


same: Callable[[str, int], Coroutine[Any, Any, Reservation]] = reserve


@action(compensate_with=release)
@activity.defn
def reserve_in_thread(item: str) -> Reservation:
    return Reservation()


assert_type(reserve_in_thread("shoe"), Reservation)


@action(compensate_with="cancel_order", undo_options={"start_to_close_timeout": timedelta(1)})
@workflow.defn
class Order(CompensatedWorkflow):
    compensation = CompensationPolicy(uncommitted="allow")

    @workflow.run
    async def run(self, item: str) -> int:
        options: dict[str, Any] = {}
        got = await workflow.execute_activity(
            reserve, args=[item, 2], start_to_close_timeout=timedelta(seconds=1)
        )
        assert_type(got, Reservation)
        one = await workflow.execute_activity(
            reserve_in_thread, item, start_to_close_timeout=timedelta(seconds=1)
        )
        assert_type(one, Reservation)
        assert_type(await compensate(), CompensationReport)
        assert_type(await compensate(reserve), CompensationReport)
        assert_type(await compensate("reserve"), CompensationReport)
        assert_type(report(), CompensationReport)
        return len(options)


run: Callable[[str], Coroutine[Any, Any, int]] = Order().run


@workflow.defn
class OptedOut(CompensatedWorkflow):
    compensation = None

    @workflow.run
    async def run(self) -> None: ...


def read(context: UndoContext) -> None:
    assert_type(context.result(Reservation), Reservation)
    assert_type(context.result(), Any)
    assert_type(context.args(str, int), tuple[Any, ...])


assert_type(idempotency_key(), str)
assert_type(idempotency_key("fee", role="action"), str)
declare("Invoice", kind="workflow", compensate_with=release, committed_by=Order)
CompensationPlugin(policy=CompensationPolicy(), unrecorded="fail")


class OutOfStock(Exception): ...


action(irreversible=True, no_effect_errors=[OutOfStock, "Closed"])

# What must not pass; an unneeded ignore is an error, so each of these is one that is found.
action(compensate_with=5)  # type: ignore[arg-type]
action(undo_input="everything")  # type: ignore[arg-type]
action(on_unknown="guess")  # type: ignore[arg-type]
action(release)  # type: ignore[call-arg]
action(no_effect_errors=[5])  # type: ignore[list-item]
declare("Invoice", kind="nexus")  # type: ignore[arg-type]
idempotency_key(role="owner")  # type: ignore[arg-type]
CompensationPlugin(unrecorded="ignore")  # type: ignore[arg-type]
CompensationPolicy(colour=1)  # type: ignore[call-arg]
unsent = reserve(5, "shoe")  # type: ignore[arg-type]
