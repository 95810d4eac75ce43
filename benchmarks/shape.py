"""The order sample's shape three times over: no undo, an undo written by hand, a declared one.

The activities are the same functions for all three. ``@action`` only marks them: a worker without
the plugin runs them as if it were not there. All three workflows have the same registered name, so
that their histories differ by nothing but what the undo needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, FailureError

from agboss_temporal import CompensatedWorkflow, action

ORDER: Final = "Order"
MANY: Final = "ManyActions"
WITH_OPTIONS: Final = "WithOptions"

TIMEOUT: Final = timedelta(seconds=30)
SETTLE: Final = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED


@dataclass
class Order:
    """What every activity and workflow here is given."""

    order_id: str
    amount: int = 4200
    fails: bool = False


@dataclass
class Receipt:
    """What every action returns, and its undo is given."""

    order_id: str
    what: str


@activity.defn
async def release_stock(receipt: Receipt) -> None:
    """Undo `reserve_stock`."""


@activity.defn
async def refund_card(receipt: Receipt) -> None:
    """Undo `charge_card`."""


@activity.defn
async def cancel_invoice(receipt: Receipt) -> None:
    """Undo `issue_invoice`."""


@activity.defn
async def dismiss_courier(receipt: Receipt) -> None:
    """Undo `book_courier`."""


@activity.defn
async def return_parcel(order: Order) -> None:
    """Undo `pack_parcel`."""


@action(compensate_with=release_stock, committed_by="ship_order")
@activity.defn
async def reserve_stock(order: Order) -> Receipt:
    """Act for the first time."""
    return Receipt(order.order_id, "stock")


@action(compensate_with=refund_card, committed_by="ship_order")
@activity.defn
async def charge_card(order: Order) -> Receipt:
    """Act for the second time."""
    return Receipt(order.order_id, "charge")


@action(compensate_with=cancel_invoice, committed_by="ship_order")
@activity.defn
async def issue_invoice(order: Order) -> Receipt:
    """Act for the third time."""
    return Receipt(order.order_id, "invoice")


@action(compensate_with=dismiss_courier, committed_by="ship_order")
@activity.defn
async def book_courier(order: Order) -> Receipt:
    """Act for the fourth time."""
    return Receipt(order.order_id, "courier")


@action(
    compensate_with=return_parcel,
    committed_by="ship_order",
    undo_input="args",
    undo_options={
        "task_queue": "warehouse",
        "start_to_close_timeout": timedelta(seconds=20),
        "retry_policy": RetryPolicy(maximum_attempts=5),
    },
)
@activity.defn
async def pack_parcel(order: Order) -> Receipt:
    """Act, under a contract with options."""
    return Receipt(order.order_id, "parcel")


@activity.defn
async def ship_order(order: Order) -> Receipt:
    """Commit the order, or fail for good.

    Raises:
        ApplicationError: The order is one that fails.
    """
    if order.fails:
        raise ApplicationError("no courier came", type="ShippingRefused", non_retryable=True)
    return Receipt(order.order_id, "shipment")


ACTIVITIES: Final[list[Callable[..., Any]]] = [
    *(release_stock, refund_card, cancel_invoice, dismiss_courier, return_parcel),
    *(reserve_stock, charge_card, issue_invoice, book_courier, pack_parcel, ship_order),
]


@workflow.defn(name=ORDER)
class PlainOrder:
    """No undo: what a failure leaves behind stays."""

    @workflow.run
    async def run(self, order: Order) -> Receipt:
        """Act four times and commit."""
        await workflow.execute_activity(reserve_stock, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(charge_card, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(issue_invoice, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(book_courier, order, start_to_close_timeout=TIMEOUT)
        return await workflow.execute_activity(ship_order, order, start_to_close_timeout=TIMEOUT)


@workflow.defn(name=ORDER)
class DeclaredOrder(CompensatedWorkflow):
    """The same code; the undo is declared on the activities."""

    @workflow.run
    async def run(self, order: Order) -> Receipt:
        """Act four times and commit."""
        await workflow.execute_activity(reserve_stock, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(charge_card, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(issue_invoice, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(book_courier, order, start_to_close_timeout=TIMEOUT)
        return await workflow.execute_activity(ship_order, order, start_to_close_timeout=TIMEOUT)


Undo = tuple[Callable[[Receipt], Awaitable[None]], Receipt]


@workflow.defn(name=ORDER)
class HandWrittenOrder:
    """The undo written by hand, with the care that it takes to be right under cancellation."""

    @workflow.run
    async def run(self, order: Order) -> Receipt:
        """Act four times and commit, or undo what was done, newest first."""
        undos: list[Undo] = []
        try:
            undos.append((release_stock, await _settled(reserve_stock, order)))
            undos.append((refund_card, await _settled(charge_card, order)))
            undos.append((cancel_invoice, await _settled(issue_invoice, order)))
            undos.append((dismiss_courier, await _settled(book_courier, order)))
            return await _settled(ship_order, order)
        except (FailureError, asyncio.CancelledError):
            await _to_the_end(_undo_all(undos))
            raise


async def _settled(act: Callable[[Order], Awaitable[Receipt]], order: Order) -> Receipt:
    return await workflow.execute_activity(
        act, order, start_to_close_timeout=TIMEOUT, cancellation_type=SETTLE
    )


async def _undo_all(undos: list[Undo]) -> None:
    for undo, receipt in reversed(undos):
        await workflow.execute_activity(
            undo,
            receipt,
            start_to_close_timeout=timedelta(seconds=30),
            schedule_to_close_timeout=timedelta(hours=1),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1)
            ),
            cancellation_type=SETTLE,
        )


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            workflow.random()  # raises when the workflow is only being evicted
    task.result()


@workflow.defn(name=MANY)
class ManyActions:
    """One action very often, one at a time or in batches."""

    @workflow.run
    async def run(self, actions: int, batch: int) -> None:
        """Act, and commit at the end.

        Args:
            actions: How often.
            batch: How many at once.
        """
        for first in range(0, actions, batch):
            orders = [Order(f"order-{n}") for n in range(first, min(first + batch, actions))]
            if batch == 1:
                await _reserved(orders[0])
            else:
                await asyncio.gather(*map(_reserved, orders))
        await workflow.execute_activity(
            ship_order, Order("order-last"), start_to_close_timeout=TIMEOUT
        )


def _reserved(order: Order) -> Awaitable[Receipt]:
    return workflow.start_activity(reserve_stock, order, start_to_close_timeout=TIMEOUT)


@workflow.defn(name=WITH_OPTIONS)
class WithOptions:
    """Acts once under a contract with options."""

    @workflow.run
    async def run(self, order: Order) -> None:
        """Act and commit."""
        await workflow.execute_activity(pack_parcel, order, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(ship_order, order, start_to_close_timeout=TIMEOUT)
