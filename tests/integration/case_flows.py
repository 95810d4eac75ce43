"""Workflows of single scenario rows: cancels, orders, and records that stay small."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow, action
from tests.integration.child_flows import Known
from tests.support.acts import WORLD, Receipt, refund
from tests.support.calls import ONCE, charge, explode
from tests.support.calls import refund as refund_by_hand
from tests.support.meanwhile import MEANWHILE

NOBODY = "a-queue-without-a-worker"
CHILD_CANCEL_TYPES = {
    "try": workflow.ChildWorkflowCancellationType.TRY_CANCEL,
    "abandon": workflow.ChildWorkflowCancellationType.ABANDON,
}


@workflow.defn(sandboxed=False)
class StartsChild(CompensatedWorkflow):
    """The test acts after the start of the child has been asked for, before it has happened."""

    @workflow.run
    async def run(self, child: str, queue: str | None) -> None:
        await charge("parent")
        self.holding = asyncio.create_task(self.hold())
        await workflow.execute_child_workflow(
            child, "wait", id=workflow.info().workflow_id + "-child", task_queue=queue
        )

    async def hold(self) -> None:
        MEANWHILE.hold(workflow.info().workflow_id)

    @workflow.signal
    def break_it(self) -> None:
        raise ApplicationError("while the child starts", type="SignalFailed")


@workflow.defn
class QueuedAndChild(CompensatedWorkflow):
    """An action that nobody takes, beside a child that runs."""

    @workflow.run
    async def run(self) -> None:
        await charge("before")
        await asyncio.gather(
            charge("never taken", task_queue=NOBODY),
            workflow.execute_child_workflow(
                Known.run, "wait", id=workflow.info().workflow_id + "-child"
            ),
        )


@workflow.defn
class HedgesLocally(CompensatedWorkflow):
    """Two local calls of an action; the first one wins and the other is cancelled."""

    @workflow.run
    async def run(self) -> None:
        gate = workflow.info().workflow_id
        fast = workflow.start_local_activity("charge", args=["fast", None], **ONCE)
        slow = workflow.start_local_activity("charge", args=["slow", gate], **ONCE)
        _, losers = await workflow.wait([fast, slow], return_when=asyncio.FIRST_COMPLETED)
        for loser in losers:
            loser.cancel()
        await workflow.wait(losers)
        await explode()


@workflow.defn
class AsksFirst(CompensatedWorkflow):
    """Undoes one action by hand when it is cancelled, but only once somebody has agreed."""

    def __init__(self) -> None:
        self.approved = False

    @workflow.run
    async def run(self) -> None:
        receipt = await charge("by hand")
        await charge("automatic")
        try:
            await workflow.wait_condition(lambda: False)
        finally:
            await workflow.wait_condition(lambda: self.approved, timeout=timedelta(hours=1))
            await refund_by_hand(receipt)

    @workflow.signal
    def approve(self) -> None:
        self.approved = True


@action(compensate_with=refund)
@workflow.defn
class LateTrip(CompensatedWorkflow):
    """A child that goes on when it is cancelled, and completes when it likes."""

    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self) -> Receipt:
        receipt = await charge("trip")
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            await workflow.wait_condition(lambda: self.go)
        return receipt

    @workflow.signal
    def complete(self) -> None:
        self.go = True


@workflow.defn
class TakesLateTrip(CompensatedWorkflow):
    @workflow.run
    async def run(self, cancel_type: str) -> None:
        await charge("parent")
        await workflow.execute_child_workflow(
            LateTrip.run,
            id=workflow.info().workflow_id + "-child",
            cancellation_type=CHILD_CANCEL_TYPES[cancel_type],
        )


@workflow.defn
class WaitsForEver(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await charge("a")
        await charge("b")
        await workflow.wait_condition(lambda: False)


@workflow.defn
class Four(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        for item in "abcd":
            await charge(item)
        await explode()


@workflow.defn
class Fan(CompensatedWorkflow):
    """Three actions at once, each at a gate of its own, then a failure."""

    @workflow.run
    async def run(self) -> None:
        own_id = workflow.info().workflow_id
        await asyncio.gather(*(charge(item, f"{own_id}:{item}") for item in "abc"))
        await explode()


@workflow.defn
class HasBrokenChild(CompensatedWorkflow):
    """Its child fails, and so does one of the child's undos."""

    @workflow.run
    async def run(self) -> None:
        await charge("parent")
        await workflow.execute_child_workflow(
            BrokenChild.run, id=workflow.info().workflow_id + "-child"
        )


@workflow.defn
class BrokenChild(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await charge("fine")
        await charge("n4-broken")
        await explode()


# -- continuing as new


@activity.defn
async def unbook(item: str, seats: int) -> None:
    WORLD.did(f"unbook:{item}:{seats}")


@action(compensate_with=unbook, undo_input="args")
@activity.defn
async def book(item: str, seats: int) -> None:
    WORLD.did(f"book:{item}:{seats}")


@action(compensate_with=refund)
@activity.defn
async def store(item: str, data: str) -> Receipt:
    WORLD.did(f"store:{item}")
    return Receipt(item)


CASE_ACTS: list[Any] = [book, unbook, store]
LARGE = 900_000


@workflow.defn
class Renews(CompensatedWorkflow):
    """Books once, continues as new so many times, then fails."""

    @workflow.run
    async def run(self, left: int, first: bool = True) -> None:
        if first:
            await workflow.execute_activity(book, args=["original", 7], **ONCE)
        if left:
            workflow.continue_as_new(args=[left - 1, False])
        await explode()


@workflow.defn
class UntilSuggested(CompensatedWorkflow):
    """Acts until Temporal suggests to continue as new, does so, acts once more and fails."""

    @workflow.run
    async def run(self, number: int = 0) -> None:
        first = number == 0
        while number < 30:
            number += 1
            await workflow.execute_activity(
                store, args=[str(number), "x" * LARGE if first else ""], **ONCE
            )
            if not first:
                await explode()
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(number)


@workflow.defn
class StoresLarge(CompensatedWorkflow):
    """Hands large arguments to an action, continues as new, and waits."""

    @workflow.run
    async def run(self, first: bool = True) -> None:
        if first:
            for item in "ab":
                await workflow.execute_activity(store, args=[item, "x" * LARGE], **ONCE)
            workflow.continue_as_new(False)
        await workflow.wait_condition(lambda: False)
