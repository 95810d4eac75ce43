"""Handing a part of a plan to a child workflow, because the run's history has no room (rule E8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, ChildWorkflowError, FailureError

from agboss_temporal.carrying import packed
from agboss_temporal.core import portions, recovery
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.plan import Unwind
from agboss_temporal.core.portions import Portion
from agboss_temporal.core.recovery import Outcome, RecoveryPlan
from agboss_temporal.plan_input import as_payload, policy_to_json
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo import Why, payload_size


def portion(
    run: Run,
    record: Unwind,
    why: Why,
    policy: CompensationPolicy,
    until: datetime | None,
    rest: Sequence[Entry],
) -> Portion | None:
    """Write the plan of one child: as many entries as it may have, and as fit into one input.

    Args:
        run: The run.
        record: The unwind that they belong to.
        why: What started it.
        policy: The policy in force.
        until: When the unwind's time is over.
        rest: What is left, in an order that suits undoing it one after another.

    Returns:
        The portion, ``None`` if not even the first entry fits.
    """
    return portions.portion(
        [payload_size(entry) for entry in rest[: run.budget.per_child]],
        run.budget.per_child,
        run.payload_limit,
        lambda count: recovery.encode_plan(_plan(record, why, policy, until, rest[:count])),
    )


async def delegate(run: Run, record: Unwind, part: Portion) -> Mapping[str, Outcome] | Outcome:
    """Let a child execute a portion, and wait for it. Nothing that happens to the run reaches it.

    Returns:
        What became of each entry, by key; or of all of them, if the child gave no answer.
    """
    run.handed_over += 1
    child_id = _child_id(run.handed_over)
    run.handing_over[child_id] = (run.handed_over, record)
    try:
        handle = await workflow.start_child_workflow(
            recovery.RECOVERY_TYPE,
            as_payload(part.data),
            id=child_id,
            result_type=RawValue,
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
            static_summary=f"undoes {part.count} actions",
        )
        return recovery.decode_result((await handle).payload.data)
    except (FailureError, RecordError) as err:
        return recovery.no_answer(_type(err))
    finally:
        run.handing_over.pop(child_id, None)


def result_payload(record: Unwind) -> RawValue:
    """Return what a workflow that has executed a plan answers."""
    return as_payload(recovery.encode_result(record.plan))


def _plan(
    record: Unwind,
    why: Why,
    policy: CompensationPolicy,
    until: datetime | None,
    entries: Sequence[Entry],
) -> RecoveryPlan:
    settled = sorted(range(len(entries)), key=lambda n: entries[n].sequence)
    places = {number: place for place, number in enumerate(settled)}
    info = workflow.info()
    reason = why.reason
    return RecoveryPlan(
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        entries=packed([entries[n] for n in settled], binding=True),
        order=[places[n] for n in range(len(entries))],
        unwind=record.ordinal,
        trigger=why.trigger,
        cause=why.cause,
        message=reason.message,
        policy=policy_to_json(policy),
        until=until,
    )


def _child_id(number: int) -> str:
    """Name a child: the same in every replay, another one for what a reset executes again.

    A reset gives the run another id, which its replay would not agree with; its random seed stays
    the same up to the reset and is another one after it.
    """
    tail = f"{workflow.random_seed():x}/{number}"
    return recovery.recovery_id(workflow.info().workflow_id, tail)


def _type(error: Exception) -> str:
    cause = error.cause if isinstance(error, ChildWorkflowError) and error.cause else error
    if isinstance(cause, ApplicationError) and cause.type:
        return cause.type
    return type(cause).__name__
