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

from agboss_temporal.core.contract import Contract

LOST_RESULT_TYPES = frozenset({"PayloadsTooLarge", "PayloadValidationError"})
"""Types of the errors with which an activity's worker replaces a result that it cannot send."""

_REFUSED_RESULT = "Complete result exceeds size limit"
"""How the server begins its message when the worker has sent such a result all the same."""


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
    cause: Any = getattr(error, "cause", None) or error
    if isinstance(cause, WorkflowAlreadyStartedError):
        return None
    if isinstance(cause, CancelledError):
        if never_sent:
            return None
        return "abandoned" if abandoned else "cancelled"
    if isinstance(cause, TimeoutError):
        never_started = cause.type == TimeoutType.SCHEDULE_TO_START and single_attempt
        return None if never_started else "timed_out"
    if isinstance(cause, ApplicationError):
        known = contract.no_effect_errors if contract is not None else ()
        if cause.type in known:
            return None
        return "lost_result" if cause.type in LOST_RESULT_TYPES else "raised"
    if isinstance(cause, ServerError) and cause.message.startswith(_REFUSED_RESULT):
        return "lost_result"
    return "raised"
