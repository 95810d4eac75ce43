"""The order itself. It says what is done; what is undone follows from the activities."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from agboss_temporal import CompensatedWorkflow, CompensationPolicy
    from samples.order.activities import charge_card, reserve_stock, ship_order
    from samples.order.models import Order, Receipt

TASK_QUEUE = "order-fulfilment"


@workflow.defn
class OrderWorkflow(CompensatedWorkflow):
    """Reserves, charges and ships; if that fails or is cancelled, it refunds and releases."""

    # An attempt whose worker died is noticed after this time and repeated, by any worker.
    compensation = CompensationPolicy(
        undo_options={"start_to_close_timeout": timedelta(seconds=3)},
    )

    @workflow.run
    async def run(self, order: Order) -> Receipt:
        """Fulfil an order."""
        patience = timedelta(seconds=30)
        await workflow.execute_activity(reserve_stock, order, start_to_close_timeout=patience)
        payment = await workflow.execute_activity(
            charge_card, order, start_to_close_timeout=patience
        )
        shipment = await workflow.execute_activity(
            ship_order, order, start_to_close_timeout=patience
        )
        return Receipt(order_id=order.id, paid_cents=payment.cents, tracking=shipment.tracking)
