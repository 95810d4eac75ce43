"""Executing a plan: the undos, in their order, within their bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow

from agboss_temporal.core import markdown
from agboss_temporal.core.entry import State, Step
from agboss_temporal.core.order import CausalOrder
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.portions import Portion
from agboss_temporal.core.recovery import NOT_ANSWERED, Outcome
from agboss_temporal.hand_over import delegate, portion
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo import Why, payload_size, undo

MAX_SHOWN: Final = 20
"""How often an unwind renews the current details on its way; each time costs a whole report."""


async def execute(run: Run, record: Unwind, why: Why) -> None:
    """Give every entry of an unwind's plan its verdict."""
    policy = run.policy or CompensationPolicy()
    until = None
    if policy.total_timeout is not None and record.started_at is not None:
        until = record.started_at + policy.total_timeout
    await Execution(run, record, why, policy, until=until).run_plan()


class Execution:
    """A plan while it is executed. Entries are named by their place in it, from 0.

    Args:
        run: The run.
        record: The unwind, planned.
        why: What started it.
        policy: The policy in force.
        until: When its time is over.
        hands_over: Whether child workflows get what the run's history has no room for.
    """

    def __init__(
        self,
        run: Run,
        record: Unwind,
        why: Why,
        policy: CompensationPolicy,
        *,
        until: datetime | None = None,
        hands_over: bool = True,
    ) -> None:
        self._policy = policy
        self._run = run
        self._record = record
        self._why = why
        self._until = until
        self._hands_over = hands_over
        self._plan = list(record.plan)
        self._stride = -(-len(self._plan) // MAX_SHOWN)
        self._begun = 0
        self._stopped = False
        self._to_undo = {
            planned.entry.key: payload_size(planned.entry)
            for planned in self._plan
            if not planned.entry.contract.irreversible
        }
        self._bytes_left = sum(self._to_undo.values())

    async def run_plan(self) -> None:
        """Give every entry its verdict."""
        if self._policy.order == "causal":
            rest = await self._overlapping()
        else:
            rest = await self._one_after_another()
        if rest:
            await self._hand_over(rest)

    async def _one_after_another(self) -> Sequence[int]:
        """Execute the plan in its order; each undo waits for the one before.

        Returns:
            What the history has no room for.
        """
        for number in range(len(self._plan)):
            if not self._fits():
                return range(number, len(self._plan))
            left = self._begin(number)
            if not self._decided(number, left):
                await self._undo(number, left)
        return ()

    async def _overlapping(self) -> Sequence[int]:
        """Execute the plan as `CausalOrder` allows, so many undos at once as the policy does.

        Returns:
            What the history has no room for, in an order that suits undoing it one by one.
        """
        order = CausalOrder([planned.entry for planned in self._plan])
        running: dict[int, asyncio.Task[None]] = {}
        ended: asyncio.Queue[int] = asyncio.Queue()

        async def undo_and_tell(number: int, left: timedelta | None) -> None:
            try:
                await self._undo(number, left)
            finally:
                ended.put_nowait(number)

        fits = True
        while True:
            while len(running) < self._policy.max_parallel:
                fits = fits and self._fits()
                number = order.take() if fits else None
                if number is None:
                    break
                left = self._begin(number)
                if self._decided(number, left):
                    order.finish(number)
                else:
                    running[number] = asyncio.create_task(undo_and_tell(number, left))
            if not running:
                return order.drain()
            # In the order in which they ended, which is that of the history.
            number = await ended.get()
            running.pop(number).result()
            order.finish(number)

    async def _hand_over(self, rest: Sequence[int]) -> None:
        """Let child workflows execute what is left, one after another."""
        while rest := [n for n in rest if not self._decided(n, self._time_left())]:
            part = portion(
                self._run,
                self._record,
                self._why,
                self._policy,
                self._until,
                [self._plan[n].entry for n in rest],
            )
            if part is None:  # One entry that is too large to be handed on, but not to be undone.
                await self._undo(rest[0], self._begin(rest[0]))
                rest = rest[1:]
            else:
                await self._delegate(part, [self._plan[n] for n in rest[: part.count]])
                rest = rest[part.count :]

    async def _delegate(self, part: Portion, portion: Sequence[Planned]) -> None:
        for planned in portion:
            self._run.ledger.move(planned.entry, Step.UNDO)
            planned.started_at = self._run.now()
        found = await delegate(self._run, self._record, part)
        for planned in portion:
            outcome = found if isinstance(found, Outcome) else found.get(planned.entry.key)
            if outcome is not None and outcome is not found:
                self._run.observer.answered(planned.entry)
            self._adopt(planned, outcome or NOT_ANSWERED)
        show(self._run)

    def _adopt(self, planned: Planned, outcome: Outcome) -> None:
        """Make the verdict of a child that of the plan."""
        entry = planned.entry
        step = outcome.step
        if step not in (Step.SUCCEED, Step.FAIL):
            self._run.ledger.reopen(entry)
        if entry.state is State.SEALED:
            self._drop(planned)
            return
        self._close(planned, step, outcome.reason)
        planned.started_at = outcome.started_at or planned.started_at
        planned.ended_at = outcome.ended_at or planned.ended_at

    def _fits(self) -> bool:
        """Tell whether the run's own history has room for what is left."""
        if not self._hands_over or self._stopped:
            return True
        info = workflow.info()
        return self._run.budget.fits(
            info.get_current_history_length(),
            info.get_current_history_size(),
            len(self._to_undo),
            self._bytes_left,
        )

    def _begin(self, number: int) -> timedelta | None:
        """Turn to an entry; return how much time is left."""
        self._begun += 1
        if self._begun % self._stride == 0:
            show(self._run)
        self._plan[number].started_at = self._run.now()
        return self._time_left()

    def _time_left(self) -> timedelta | None:
        return None if self._until is None else self._until - self._run.now()

    def _decided(self, number: int, left: timedelta | None) -> bool:
        """Close an entry for which no undo is to run; tell whether it is such a one."""
        planned = self._plan[number]
        if planned.entry.state not in (State.OPEN, State.IN_DOUBT):
            self._drop(planned)
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
        self._run.observer.undo_begins(self._record, planned)
        summary = f"undo of {planned.entry.contract.action} {number + 1}/{len(self._plan)}"
        reason = await undo(
            self._run, self._record, planned.entry, self._why, self._policy, left, summary
        )
        self._close(planned, Step.SUCCEED if reason is None else Step.FAIL, reason)

    def _drop(self, planned: Planned) -> None:
        """Take an entry out of the plan that was sealed meanwhile: there is nothing to undo."""
        self._record.plan.remove(planned)
        self._bytes_left -= self._to_undo.pop(planned.entry.key, 0)

    def _close(self, planned: Planned, step: Step, reason: str | None = None) -> None:
        self._run.ledger.move(planned.entry, step)
        self._bytes_left -= self._to_undo.pop(planned.entry.key, 0)
        planned.verdict = str(planned.entry.state)
        planned.reason = reason
        planned.ended_at = self._run.now()
        planned.started_at = planned.started_at or planned.ended_at
        self._run.observer.judged(self._record, planned)
        if step is Step.FAIL:
            self._stopped = self._stopped or self._policy.on_exhausted == "stop"


def show(run: Run) -> None:
    """Put the report into the workflow's current details, unless the user has set their own."""
    if workflow.get_current_details() in ("", run.shown):
        run.shown = markdown.details(run.report())
        workflow.set_current_details(run.shown)
