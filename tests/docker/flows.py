"""What the order sample does not do, and what a dashboard has to show."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from agboss_temporal import CompensatedWorkflow, action
    from samples.order.activities import charge_card
    from samples.order.models import Order

PATIENCE = timedelta(seconds=30)


@action(irreversible=True)
@activity.defn
def send_letter(order: Order) -> None:
    """Does something that the sample's activities refuse to do without a record."""


@workflow.defn
class Stuck(CompensatedWorkflow):
    """Fails when the card is charged; the bank is down, so its unwind does not end."""

    @workflow.run
    async def run(self, order: Order) -> None:
        await workflow.execute_activity(charge_card, order, start_to_close_timeout=PATIENCE)
        raise ApplicationError("cannot go on", non_retryable=True)


@workflow.defn
class Unrecorded(CompensatedWorkflow):
    """Calls an action as a local activity."""

    @workflow.run
    async def run(self, order: Order) -> None:
        await workflow.execute_local_activity(send_letter, order, start_to_close_timeout=PATIENCE)


@workflow.defn
class Defective(CompensatedWorkflow):
    """Fails every workflow task."""

    @workflow.run
    async def run(self, order: Order) -> None:
        raise RuntimeError("a defect")
