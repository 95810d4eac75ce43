"""What the end of a call says about its effect: known to be absent, or in doubt (rule K5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

LOST_RESULT_TYPES: Final = frozenset({"PayloadsTooLarge", "PayloadValidationError"})
"""Types of the errors with which an activity's worker replaces a result that it cannot send."""

REFUSED_RESULT: Final = "Complete result exceeds size limit"
"""How the server begins its message when the worker has sent such a result all the same."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a call ended with instead of a result, without anything that a user wrote.

    Attributes:
        kind: What sort of failure it is.
        type: Type of the error, as reports name it.
        never_started: Whether it is a timeout that ran out before the call was picked up.
        refused_result: Whether the server says that it refused the result.
    """

    kind: Literal["application", "timeout", "cancelled", "already_started", "other"]
    type: str = ""
    never_started: bool = False
    refused_result: bool = False


def doubt(
    failure: Failure,
    no_effect_errors: Collection[str] = (),
    *,
    abandoned: bool = False,
    never_sent: bool = False,
    single_attempt: bool = False,
) -> str | None:
    """Say why nobody knows whether a call took effect.

    Args:
        failure: What the call ended with.
        no_effect_errors: Types of errors that prove that nothing was done.
        abandoned: Whether the call was started with cancellation type ABANDON.
        never_sent: Whether the workflow task that started the call has not been completed.
        single_attempt: Whether the call had one attempt only.

    Returns:
        The kind of doubt, or ``None`` when the call is known to have had no effect.
    """
    if failure.kind == "already_started":
        return None
    if failure.kind == "cancelled":
        if never_sent:
            return None
        return "abandoned" if abandoned else "cancelled"
    if failure.kind == "timeout":
        return None if failure.never_started and single_attempt else "timed_out"
    if failure.kind == "application":
        if failure.type in no_effect_errors:
            return None
        return "lost_result" if failure.type in LOST_RESULT_TYPES else "raised"
    return "lost_result" if failure.refused_result else "raised"
