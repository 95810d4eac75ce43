"""Executing a plan: the undos, in their order, within their bounds."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow

from agboss_temporal.core import markdown
from agboss_temporal.core.ledger import State, Step
from agboss_temporal.core.order import CausalOrder
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo import Why, undo

MAX_SHOWN: Final = 20
"""How often an unwind renews the current details on its way; each time costs a whole report."""


async def execute(run: Run, record: Unwind, why: Why) -> None:
    """Give every entry of an unwind's plan its verdict."""
    execution = Execution(run, record, why, run.policy or CompensationPolicy())
    if execution.policy.order == "causal":
        await execution.overlapping()
    else:
        await execution.one_after_another()


class Execution:
    """A plan while it is executed. Entries are named by their place in it, from 0.

    Args:
        run: The run.
        record: The unwind, planned.
        why: What started it.
        policy: The policy in force.
    """

    def __init__(self, run: Run, record: Unwind, why: Why, policy: CompensationPolicy) -> None:
        self.policy = policy
        self._run = run
        self._record = record
        self._why = why
        self._plan = list(record.plan)
        self._stride = -(-len(self._plan) // MAX_SHOWN)
        self._begun = 0
        self._stopped = False

    async def one_after_another(self) -> None:
        """Execute the plan in its order; each undo waits for the one before."""
        for number in range(len(self._plan)):
            left = self._begin(number)
            if not self._decided(number, left):
                await self._undo(number, left)

    async def overlapping(self) -> None:
        """Execute the plan as `CausalOrder` allows, so many undos at once as the policy does."""
        order = CausalOrder([planned.entry for planned in self._plan])
        running: dict[int, asyncio.Task[None]] = {}
        ended: asyncio.Queue[int] = asyncio.Queue()

        async def undo_and_tell(number: int, left: timedelta | None) -> None:
            try:
                await self._undo(number, left)
            finally:
                ended.put_nowait(number)

        while True:
            while len(running) < self.policy.max_parallel:
                number = order.take()
                if number is None:
                    break
                left = self._begin(number)
                if self._decided(number, left):
                    order.finish(number)
                else:
                    running[number] = asyncio.create_task(undo_and_tell(number, left))
            if not running:
                return
            # In the order in which they ended, which is that of the history.
            number = await ended.get()
            running.pop(number).result()
            order.finish(number)

    def _begin(self, number: int) -> timedelta | None:
        """Turn to an entry; return how much of the total timeout is left."""
        self._begun += 1
        if self._begun % self._stride == 0:
            show(self._run)
        now = self._run.now()
        self._plan[number].started_at = now
        return _time_left(self._record.started_at, self.policy.total_timeout, now)

    def _decided(self, number: int, left: timedelta | None) -> bool:
        """Close an entry for which no undo is to run; tell whether it is such a one."""
        planned = self._plan[number]
        if planned.entry.state not in (State.OPEN, State.IN_DOUBT):
            self._record.plan.remove(planned)  # Sealed meanwhile: there is nothing to undo.
        elif planned.entry.contract.irreversible:
            self._close(planned, Step.KEEP)
        elif self._stopped:
            self._close(planned, Step.LEAVE, "an undo before it gave up")
        elif left is not None and left <= timedelta(0):
            self._close(planned, Step.LEAVE, "total_timeout")
        else:
            return False
        return True

    async def _undo(self, number: int, left: timedelta | None) -> None:
        planned = self._plan[number]
        action = planned.entry.contract.action
        summary = f"undo of {action} {number + 1}/{len(self._plan)}"
        reason = await undo(
            self._run, self._record, planned.entry, self._why, self.policy, left, summary
        )
        self._close(planned, Step.SUCCEED if reason is None else Step.FAIL, reason)
        if reason is not None:
            workflow.logger.error("the undo of %s gave up: %s", action, reason)
            self._stopped = self._stopped or self.policy.on_exhausted == "stop"

    def _close(self, planned: Planned, step: Step, reason: str | None = None) -> None:
        self._run.ledger.move(planned.entry, step)
        planned.verdict = str(planned.entry.state)
        planned.reason = reason
        planned.ended_at = self._run.now()


def _time_left(
    started: datetime | None, total: timedelta | None, now: datetime
) -> timedelta | None:
    if total is None or started is None:
        return None
    return started + total - now


def show(run: Run) -> None:
    """Put the report into the workflow's current details, unless the user has set their own."""
    if workflow.get_current_details() in ("", run.shown):
        run.shown = markdown.details(run.report())
        workflow.set_current_details(run.shown)
