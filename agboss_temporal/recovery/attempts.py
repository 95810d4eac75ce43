"""Reading what workflows of the recovery type have done, from their histories."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from agboss_temporal.core import recovery, wire
from agboss_temporal.core.attempts import Attempt, Attempts, Tried, with_attempts
from agboss_temporal.core.errors import RecordError, RecoveryRefused
from agboss_temporal.core.report import FAILURE_TYPE, CompensationReport
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.history import failures
from agboss_temporal.history.calls import time_of
from agboss_temporal.history.payloads import Plain, decoded
from agboss_temporal.recovery.runs import Read, Runs

_FAILED: Final = frozenset(
    f"activity_task_{how}_event_attributes" for how in ("failed", "timed_out", "canceled")
)
_CLOSED: Final = frozenset(
    f"workflow_execution_{how}_event_attributes"
    for how in ("completed", "failed", "canceled", "terminated", "timed_out")
)


def recovery_id(family: tuple[str, str], number: int) -> str:
    """Name the recovery with a number of the runs of one family.

    The number is what keeps two from doing the same at once: an id is used once, and who comes
    second reads what the first one does.
    """
    workflow_id, run_id = family
    return recovery.recovery_id(workflow_id, f"{run_id}/{number}")


async def family_of(runs: Runs, read: Read) -> tuple[str, str]:
    """Return what all runs have in common whose recoveries must know of each other.

    It is the first run of the chain of the workflow that started all: recoveries of a child and of
    its parent, of a run and of what was made from it by a reset, count their ids together.
    """
    if read.root is None:
        return read.ledger.workflow_id, read.first_run_id
    workflow_id, run_id = read.root
    found = await runs.describe(workflow_id, run_id)
    return workflow_id, (found.first_run_id if found else "") or run_id


async def attempts_of(runs: Runs, family: tuple[str, str]) -> list[Attempt]:
    """Read all recoveries of a family, oldest first.

    Raises:
        RecoveryRefused: One of them cannot be read.
    """
    found: list[Attempt] = []
    for number in itertools.count(1):
        attempt = await read_attempt(runs, recovery_id(family, number))
        if attempt is None:
            return found
        found.append(attempt)
    raise AssertionError


async def recovered(runs: Runs, read: Read) -> RunLedger:
    """Return the ledger of a closed run with what recoveries have done for it since.

    Raises:
        RecoveryRefused: A recovery cannot be read.
    """
    attempts = await attempts_of(runs, await family_of(runs, read))
    return with_attempts(read.ledger, Attempts(attempts))


async def read_attempt(
    runs: Runs, workflow_id: str, run_id: str | None = None, *, decides: bool = False
) -> Attempt | None:
    """Read one workflow of the recovery type; ``None`` if it is not there.

    Args:
        runs: Where it is.
        workflow_id: Its id.
        run_id: Its run; by default the newest.
        decides: Whether the unwind of a run has handed it its part.

    Raises:
        RecoveryRefused: It cannot be read.
    """
    found = await runs.history(workflow_id, run_id)
    if found is None:
        return None
    try:
        return await _read(found, runs.converter(workflow_id), decides=decides)
    except RecordError as err:
        raise RecoveryRefused(
            "unreadable",
            f"{workflow_id} has worked on it before, and its history cannot be read: {err}; give "
            "the client the data converter and codec of the workers",
        ) from err


async def _read(found: WorkflowHistory, converter: DataConverter, *, decides: bool) -> Attempt:
    first, last = found.events[0], found.events[-1]
    started = first.workflow_execution_started_event_attributes
    tried = _planned(await _data(started.input.payloads, converter))
    closed = last.WhichOneof("attributes") in _CLOSED
    await _executed(tried, found, converter)
    if closed:
        await _concluded(tried, last, converter)
    return Attempt(
        found.workflow_id,
        started.original_execution_run_id,
        is_open=not closed,
        tried=tried,
        decides=decides and last.HasField("workflow_execution_completed_event_attributes"),
    )


def _planned(data: bytes) -> dict[str, Tried]:
    plan = recovery.decode_plan(data)
    return {
        each.key: Tried(
            each.key, each.contract.action, each.contract.undo, each.origin or plan.workflow_id
        )
        for each in plan.entries
    }


async def _executed(
    tried: dict[str, Tried], found: WorkflowHistory, converter: DataConverter
) -> None:
    """Add what the events of the undos say."""
    plain = await Plain.of(found.events, converter, None)
    keys: dict[int, str] = {}
    for event in found.events:
        kind = event.WhichOneof("attributes") or ""
        attributes: Any = getattr(event, kind) if kind else None
        if kind == "activity_task_scheduled_event_attributes":
            key = _key_of(attributes.header.fields, plain)
            if key in tried:
                keys[event.event_id] = key
                tried[key] = replace(tried[key], started_at=time_of(event.event_time))
            continue
        key = keys.get(getattr(attributes, "scheduled_event_id", 0), "")
        if not key:
            continue
        ended_at = time_of(event.event_time)
        if kind == "activity_task_started_event_attributes":
            tried[key] = replace(tried[key], attempts=attributes.attempt)
        elif kind == "activity_task_completed_event_attributes":
            tried[key] = replace(tried[key], verdict="undone", ended_at=ended_at)
        elif kind in _FAILED:
            cancelled = kind == "activity_task_canceled_event_attributes"
            failure = failures.CANCELLED if cancelled else failures.failure_of(attributes.failure)
            why = failure.type or failure.kind
            tried[key] = replace(tried[key], verdict="failed", reason=why, ended_at=ended_at)


def _key_of(headers: Mapping[str, Any], plain: Plain) -> str:
    if wire.HEADER not in headers:
        return ""
    data, problem = plain.json(headers[wire.HEADER])
    if problem is not None:
        raise RecordError(f"the header of an undo: {problem}")
    return wire.decode(data).undoes or ""


async def _concluded(tried: dict[str, Tried], last: HistoryEvent, converter: DataConverter) -> None:
    """Add what only its end says: verdicts without a call."""
    if last.HasField("workflow_execution_completed_event_attributes"):
        result = last.workflow_execution_completed_event_attributes.result.payloads
        for key, outcome in recovery.decode_result(await _data(result, converter)).items():
            if key in tried and tried[key].verdict is None:
                tried[key] = replace(tried[key], verdict=outcome.verdict, reason=outcome.reason)
    failure = last.workflow_execution_failed_event_attributes.failure.application_failure_info
    if failure.type == FAILURE_TYPE and failure.details.payloads:
        [details] = await converter.decode([failure.details.payloads[0]])
        for entry in CompensationReport.from_dict(details).entries:
            if entry.key in tried and tried[entry.key].verdict is None:
                tried[entry.key] = replace(
                    tried[entry.key], verdict=entry.verdict, reason=entry.reason
                )
    for key, each in tried.items():
        if each.verdict is None:
            interrupted = each.started_at is not None
            tried[key] = replace(
                each,
                verdict="failed" if interrupted else "not_run",
                reason="interrupted" if interrupted else "the recovery was stopped before",
            )


async def _data(payloads: Any, converter: DataConverter) -> bytes:
    try:
        found = await decoded(payloads, converter)
    except Exception as err:
        raise RecordError(f"its plan or result cannot be decoded ({type(err).__name__})") from err
    if not found:
        raise RecordError("it has no plan or result")
    return found[0].data
