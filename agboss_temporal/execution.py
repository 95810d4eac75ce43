"""Executing a plan: the undos, in their order, within their bounds."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from temporalio import workflow

from agboss_temporal.core import markdown
from agboss_temporal.core.entry import Step
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo import Why, undo

MAX_SHOWN: Final = 20
"""How often an unwind renews the current details on its way; each time costs a whole report."""


async def execute(run: Run, record: Unwind, why: Why) -> None:
    """Give every entry of an unwind's plan its verdict."""
    policy = run.policy or CompensationPolicy()
    stopped = False
    stride = -(-len(record.plan) // MAX_SHOWN)
    for number, planned in enumerate(record.plan, 1):
        if number % stride == 0:
            show(run)
        planned.started_at = run.now()
        left = _time_left(record.started_at, policy.total_timeout, planned.started_at)
        if planned.entry.contract.irreversible:
            _close(run, planned, Step.KEEP)
        elif stopped:
            _close(run, planned, Step.LEAVE, "an undo before it gave up")
        elif left is not None and left <= timedelta(0):
            _close(run, planned, Step.LEAVE, "total_timeout")
        else:
            summary = f"undo of {planned.entry.contract.action} {number}/{len(record.plan)}"
            reason = await undo(run, record, planned.entry, why, policy, left, summary)
            _close(run, planned, Step.SUCCEED if reason is None else Step.FAIL, reason)
            if reason is not None:
                action = planned.entry.contract.action
                workflow.logger.error("the undo of %s gave up: %s", action, reason)
                stopped = policy.on_exhausted == "stop"


def _close(run: Run, planned: Planned, step: Step, reason: str | None = None) -> None:
    run.ledger.move(planned.entry, step)
    planned.verdict = str(planned.entry.state)
    planned.reason = reason
    planned.ended_at = run.now()


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
