"""Starts an order and waits for its end: ``python -m samples.order.starter --order-id 1``."""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from agboss_temporal import CompensationReport
from samples.order.connection import connect
from samples.order.models import Order, Receipt
from samples.order.workflow import TASK_QUEUE, OrderWorkflow
from samples.order.world import EXPIRED, NOWHERE

PRICE_CENTS: Final = 2990
"""What a pot costs, whichever it is."""

_FAILURES: Final[dict[str, dict[str, Any]]] = {
    "stock": {"quantity": 1000},
    "card": {"card": EXPIRED},
    "carrier": {"address": NOWHERE},
}


def make_order(
    order_id: str, *, sku: str = "teapot", quantity: int = 2, fail: str | None = None
) -> Order:
    """Make an order.

    Args:
        order_id: Its number.
        sku: What is bought.
        quantity: How many.
        fail: Who will refuse it: ``stock``, ``card`` or ``carrier``.
    """
    order = Order(id=order_id, sku=sku, quantity=quantity, cents=quantity * PRICE_CENTS)
    return order if fail is None else order.model_copy(update=_FAILURES[fail])


async def start_order(client: Client, order: Order) -> WorkflowHandle[OrderWorkflow, Receipt]:
    """Start the workflow of an order; its id is ``order-`` and the order's."""
    return await client.start_workflow(
        OrderWorkflow.run, order, id=f"order-{order.id}", task_queue=TASK_QUEUE
    )


async def run(connected: Callable[[], Awaitable[Client]]) -> int:
    """Run the order that the command line asks for, and say what became of it."""
    parser = argparse.ArgumentParser(prog="python -m samples.order.starter")
    parser.add_argument("--order-id", required=True)
    parser.add_argument("--sku", default="teapot", choices=["teapot", "kettle"])
    parser.add_argument("--quantity", type=int, default=2)
    parser.add_argument("--fail", choices=sorted(_FAILURES), help="who refuses the order")
    asked = parser.parse_args()
    order = make_order(asked.order_id, sku=asked.sku, quantity=asked.quantity, fail=asked.fail)
    handle = await start_order(await connected(), order)
    print(f"{handle.id} started")
    try:
        receipt = await handle.result()
    except WorkflowFailureError as err:
        cause = getattr(err.cause, "cause", None) or err.cause
        print(f"{handle.id} did not go through: {cause}")
        report = await handle.query("agboss.compensation", result_type=CompensationReport)
        for entry in report.entries:
            print(f"  {entry.action}: {entry.verdict} by {entry.undo}")
        return 1
    print(f"{handle.id} is on its way: {receipt.tracking}, paid {receipt.paid_cents / 100:.2f}")
    return 0


if __name__ == "__main__":
    status = asyncio.run(run(connect))
    gc.collect()  # so that the SDK's native clients end before the interpreter does
    sys.exit(status)
