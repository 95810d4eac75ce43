"""What an error says about an effect: known to be absent, or in doubt and why (rule K5)."""

from __future__ import annotations

from typing import Any

from temporalio.exceptions import (
    ApplicationError,
    CancelledError,
    ServerError,
    TimeoutError,
    TimeoutType,
    WorkflowAlreadyStartedError,
)

from agboss_temporal.core import outcome
from agboss_temporal.core.contract import Contract


def doubt(
    error: BaseException,
    contract: Contract | None,
    *,
    abandoned: bool,
    never_sent: bool,
    single_attempt: bool,
) -> str | None:
    """Say why nobody knows whether a call took effect.

    Args:
        error: What the call ended with.
        contract: What is declared for what was called, if anything is.
        abandoned: Whether the call was started with cancellation type ABANDON.
        never_sent: Whether the workflow task that started the call has not been completed.
        single_attempt: Whether the call had one attempt only.

    Returns:
        The kind of doubt, or ``None`` when the call is known to have had no effect.
    """
    return outcome.doubt(
        _failure(getattr(error, "cause", None) or error),
        contract.no_effect_errors if contract is not None else (),
        abandoned=abandoned,
        never_sent=never_sent,
        single_attempt=single_attempt,
    )


def _failure(error: Any) -> outcome.Failure:
    if isinstance(error, WorkflowAlreadyStartedError):
        return outcome.Failure("already_started")
    if isinstance(error, CancelledError):
        return outcome.Failure("cancelled")
    if isinstance(error, TimeoutError):
        waited = error.type == TimeoutType.SCHEDULE_TO_START
        return outcome.Failure("timeout", never_started=waited)
    if isinstance(error, ApplicationError):
        return outcome.Failure("application", error.type or "")
    refused = isinstance(error, ServerError) and error.message.startswith(outcome.REFUSED_RESULT)
    return outcome.Failure("other", refused_result=refused)
