"""What the worker of an activity tells: attempts of undos, and actions that nobody recorded."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from temporalio import activity
from temporalio.exceptions import is_cancelled_exception

from agboss_temporal.core.wire import CallRecord
from agboss_temporal.telemetry import names
from agboss_temporal.telemetry.logs import extra

logger: Final = logging.getLogger("agboss_temporal")


def count_attempt(record: CallRecord, error: BaseException | None) -> None:
    """Count an attempt of an undo that has ended here; one that completes elsewhere has not.

    Args:
        record: What its header says.
        error: What it raised.
    """
    result = _result(error)
    if result is None:
        return
    activity.metric_meter().create_counter(
        names.UNDO_ATTEMPTS, names.DESCRIPTIONS[names.UNDO_ATTEMPTS]
    ).add(1, {"action": record.undoes_action or "", "result": result})


def _result(error: BaseException | None) -> str | None:
    details = activity.cancellation_details()
    if details is not None and details.timed_out:
        return "error"  # Whatever it says now, nobody takes it any more.
    if error is None:
        return "ok"
    if isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error):
        return "cancelled"
    # What is no Exception is no failure: raise_complete_async() leaves an attempt in this way.
    return "error" if isinstance(error, Exception) else None


def unrecorded(message: str) -> None:
    """Count and log an action that nobody recorded."""
    info = activity.info()
    activity.metric_meter().create_counter(
        names.UNRECORDED, names.DESCRIPTIONS[names.UNRECORDED]
    ).add(1, {"action": info.activity_type})
    fields = {
        "action": info.activity_type,
        "workflow_type": info.workflow_type,
        "workflow_id": info.workflow_id,
    }
    logger.warning(message, extra=extra("unrecorded", fields))
