"""What an error that leaves the run method, or a handler, means for the run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from agboss_temporal.exceptions import JoinFailedError, LimitExceededError
from agboss_temporal.run import Run
from agboss_temporal.undo import Why

T = TypeVar("T")


@dataclass(frozen=True)
class Ending:
    """A failure or cancellation that closes the run, or ends a handler.

    Attributes:
        error: What it is closed with if everything is undone.
        why: What the unwind is told.
        others: Further failures that came with it.
    """

    error: BaseException
    why: Why
    others: tuple[BaseException, ...] = ()


def classify(error: BaseException, run: Run) -> Ending | None:
    """Tell what an error means.

    Returns:
        The ending, or ``None`` when Temporal fails only the workflow task, which a deploy can
        cure, so that nothing may be undone.
    """
    if isinstance(error, BaseExceptionGroup) and run.named_calls:
        leaves = list(_leaves(error))
        if leaves and all(_closes(leaf) for leaf in leaves):
            return Ending(leaves[0], Why(_trigger(leaves[0]), leaves[0]), tuple(leaves[1:]))
    if not _closes(error):
        return None
    return Ending(error, Why(_trigger(error), error))


def unjoined(error: BaseException) -> BaseException:
    """Return what a join failed of, which says what Temporal has to do about it."""
    while isinstance(error, JoinFailedError) and error.__cause__ is not None:
        error = error.__cause__
    return error


async def without_joins(body: Coroutine[Any, Any, T]) -> T:
    """Await code that opted out, so that a bug in a branch of a join still is one to Temporal."""
    try:
        return await body
    except JoinFailedError as err:
        bug = unjoined(err)
        if _closes(bug):
            raise
        raise bug from bug.__cause__


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


def _closes(error: BaseException) -> bool:
    first = unjoined(error)
    if first is not error and isinstance(first, BaseExceptionGroup):
        return all(_closes(leaf) for leaf in _leaves(first))
    return isinstance(first, asyncio.CancelledError) or workflow.is_failure_exception(first)


def _trigger(error: BaseException) -> str:
    if workflow.cancellation_reason() is not None and is_cancelled_exception(error):
        return "run-cancel"
    if isinstance(error, (LimitExceededError, asyncio.TimeoutError)):
        return "cap-breach"
    return "node-failure"
