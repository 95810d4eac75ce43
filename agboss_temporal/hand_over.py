"""Handing a part of a plan to a child workflow, because the run's history has no room (rule E8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, ChildWorkflowError, FailureError

from agboss_temporal.carrying import packed
from agboss_temporal.core import recovery
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.plan import Unwind
from agboss_temporal.core.recovery import Outcome, RecoveryPlan
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo import Why, payload_size
from agboss_temporal.undo_options import to_json

MAX_INPUT: Final = 2 * 1024 * 1024 - 1024
"""How large one child's plan may be in bytes, also where payloads may be larger: it is written and
read within one workflow task."""

MAX_ID: Final = 900
"""How long a child's id may be; the server's limit is 1,000 characters, if nobody lowered it."""


@dataclass(frozen=True)
class Portion:
    """The first entries of what is left, and the plan that one child is given for them."""

    count: int
    data: bytes


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
    limit = min(run.payload_limit, MAX_INPUT)
    count = _first_guess(rest[: run.budget.per_child], limit)
    while count > 0:
        data = recovery.encode_plan(_plan(record, why, policy, until, rest[:count]))
        if len(data) <= limit:
            return Portion(count, data)
        count = min(count - 1, count * limit // len(data))
    return None


def _first_guess(entries: Sequence[Entry], limit: int) -> int:
    """Count how many entries fit if nothing can be compressed; at least one."""
    held = 0
    for count, entry in enumerate(entries):
        held += payload_size(entry)
        if held > limit:
            return max(1, count)
    return len(entries)


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
            RawValue(_payload(part.data)),
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
    return RawValue(_payload(recovery.encode_result(record.plan)))


def _payload(data: bytes) -> Payload:
    # As it is for every payload converter; codecs are applied.
    return Payload(metadata={"encoding": b"binary/plain"}, data=data)


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
        policy={
            "order": policy.order,
            "max_parallel": policy.max_parallel,
            "on_exhausted": policy.on_exhausted,
            "undo_options": to_json(policy.undo_options),
        },
        until=until,
    )


def _child_id(number: int) -> str:
    """Name a child: the same in every replay, another one for what a reset executes again.

    A reset gives the run another id, which its replay would not agree with; its random seed stays
    the same up to the reset and is another one after it.
    """
    tail = f"{workflow.random_seed():x}/{number}"
    whole = f"agboss-recovery/{workflow.info().workflow_id}/{tail}"
    return whole if len(whole.encode()) <= MAX_ID else f"agboss-recovery/{tail}"


def _type(error: Exception) -> str:
    cause = error.cause if isinstance(error, ChildWorkflowError) and error.cause else error
    if isinstance(cause, ApplicationError) and cause.type:
        return cause.type
    return type(cause).__name__
