"""Every exception of this package, and every error type that it writes to a history.

Two families. Errors under `AgbossError` speak to a developer and stay in the process. The others
are Temporal ``ApplicationError`` s: they cross the wire, and their ``type`` strings are API that
retry policies and clients may match on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from temporalio.exceptions import ApplicationError

from agboss_temporal.core.errors import (
    AgbossError,
    ContractError,
    IllegalTransitionError,
    RecordError,
)
from agboss_temporal.core.report import FAILURE_TYPE, CompensationReport

__all__ = [
    "COMPENSATION_FAILED",
    "JOIN_FAILED",
    "LIMIT_EXCEEDED",
    "UNCOMMITTED_ACTION",
    "UNRECORDED_ACTION",
    "UNWIND_IN_PROGRESS",
    "AgbossError",
    "CompensationFailedError",
    "ConfigurationError",
    "ContractError",
    "IdempotencyKeyError",
    "IllegalTransitionError",
    "JoinFailedError",
    "LimitExceededError",
    "RecordError",
    "UncommittedActionError",
]

COMPENSATION_FAILED: Final = FAILURE_TYPE
UNCOMMITTED_ACTION: Final = "UncommittedActionError"
LIMIT_EXCEEDED: Final = "LimitExceededError"
JOIN_FAILED: Final = "JoinFailedError"
UNWIND_IN_PROGRESS: Final = "UnwindInProgress"
UNRECORDED_ACTION: Final = "UnrecordedAction"


class ConfigurationError(AgbossError):
    """A worker or a workflow is set up so that compensation cannot work. Says how to mend it."""


class IdempotencyKeyError(AgbossError):
    """There is no key to derive an idempotency key from, and none is guessed."""


class CompensationFailedError(ApplicationError):
    """Something that took effect in the run was not undone.

    Non-retryable. Its ``__cause__`` is the error or cancellation that ended the run; its details
    hold the report, which `CompensationReport.from_error` reads on the client.
    """

    def __init__(self, report: CompensationReport) -> None:
        """Name what is left behind, without a word of the original error's text."""
        left = [e for e in report.entries if e.verdict not in (None, "undone", "irreversible")]
        names = ", ".join(f"{e.action} ({e.verdict})" for e in left[:10])
        more = f" and {len(left) - 10} more" if len(left) > 10 else ""
        undone = report.counts.get("undone", 0)
        total = sum(report.counts.values())
        super().__init__(
            f"compensation {report.status}: {undone} of {total} undone, left behind: {names}{more}",
            report.shortened().to_dict(),
            type=COMPENSATION_FAILED,
            non_retryable=True,
        )


class UncommittedActionError(ApplicationError):
    """The run returned although the committer of an open action never ran. Non-retryable."""

    def __init__(self, actions: dict[str, str]) -> None:
        """Name the actions and the committers that they waited for.

        Args:
            actions: Committer by action, both registered names.
        """
        pairs = ", ".join(f"{action} waits for {by}" for action, by in sorted(actions.items()))
        super().__init__(
            f"the run returned with uncommitted actions: {pairs}; call the committer, or leave "
            "committed_by out so that the run's finish commits",
            type=UNCOMMITTED_ACTION,
            non_retryable=True,
        )


class JoinFailedError(ApplicationError):
    """A branch of a `join` failed, and what all of them had done was undone.

    Its ``__cause__`` is the first error. What that one means to Temporal, it means too: whether a
    workflow's retry policy may try again, and whether it fails a workflow at all.
    """

    def __init__(
        self, failed: Sequence[str], branches: int, *, non_retryable: bool = False
    ) -> None:
        """Say what failed, by type.

        Args:
            failed: Types of the branches' errors, the first one first.
            branches: How many branches there were.
            non_retryable: Whether the first error is.
        """
        super().__init__(
            f"{len(failed)} of {branches} branches failed: {', '.join(failed[:10])}",
            type=JOIN_FAILED,
            non_retryable=non_retryable,
        )


class LimitExceededError(ApplicationError):
    """Raise it in a workflow when a budget of your own is spent: the run unwinds and fails.

    The trigger of that unwind is ``cap-breach``. Non-retryable.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, type=LIMIT_EXCEEDED, non_retryable=True)
