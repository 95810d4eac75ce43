"""An order on the server: started, perhaps cancelled, and looked at when it is closed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from agboss_temporal import CompensationReport
from tests.chaos.checks import Closed
from tests.chaos.plan import Plan, plan_of
from tests.chaos.record import read
from tests.chaos.shop import ChaosOrder
from tests.chaos.world import World

WORKFLOW_TASK_TIMEOUT = timedelta(seconds=2)
"""Time after which a workflow task of a killed worker is given to another."""


@dataclass(frozen=True)
class Order:
    """One order of a chaos run."""

    plan: Plan
    handle: WorkflowHandle[Any, Any]
    world: World

    @classmethod
    async def start(cls, client: Client, queue: str, seed: int, world: World) -> Order:
        """Start the order of a seed."""
        handle = await client.start_workflow(
            ChaosOrder.run,
            seed,
            id=f"{queue}-{seed}",
            task_queue=queue,
            task_timeout=WORKFLOW_TASK_TIMEOUT,
        )
        return cls(plan_of(seed), handle, world)

    async def close(self) -> None:
        """Wait until it is closed, and cancel it meanwhile if its plan says so."""
        async with asyncio.TaskGroup() as group:
            cancelling = group.create_task(self._cancel())
            try:
                await self.handle.result()
            except WorkflowFailureError:
                return
            finally:
                cancelling.cancel()

    async def look(self) -> tuple[Closed, WorkflowHistory]:
        """Look at it from all sides. A worker must be there."""
        history = await self.handle.fetch_history()
        record = read(history.events)
        closed = Closed(
            plan=self.plan,
            record=record,
            effects=self.world.effects(self.handle.id),
            attempts=self.world.attempts(self.handle.id),
            report=await self._report() if record.ending else CompensationReport(),
        )
        return closed, history

    async def _report(self) -> CompensationReport:
        query = self.handle.query("agboss.compensation", result_type=CompensationReport)
        report: CompensationReport = await query
        return report

    async def _cancel(self) -> None:
        if self.plan.cancel_at_undo:
            await self._undo_attempted()
        elif self.plan.cancel_after is not None:
            await asyncio.sleep(self.plan.cancel_after)
        else:
            return
        try:
            await self.handle.cancel()
        except RPCError as err:
            if err.status != RPCStatusCode.NOT_FOUND:
                raise

    async def _undo_attempted(self) -> None:
        while not any(a.kind == "undo" for a in self.world.attempts(self.handle.id)):
            await asyncio.sleep(0.05)
