"""How a run ends, and what that calls for (the table of endings in the README)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.exceptions import CancelledError, is_cancelled_exception

from agboss_temporal.core.ledger import Entry
from agboss_temporal.exceptions import (
    CompensationFailedError,
    ConfigurationError,
    LimitExceededError,
    UncommittedActionError,
)
from agboss_temporal.run import CONTINUE_PATCH, UNWIND_PATCH, Run
from agboss_temporal.undo import Why, error_type
from agboss_temporal.unwind import needed, probe_eviction, protected, unwind
from agboss_temporal_interceptors.continuing import named_calls, put_into_memo, settle_closed


@dataclass(frozen=True)
class Ending:
    """A failure or cancellation that closes the run.

    Attributes:
        error: What the run is closed with if everything is undone.
        why: What the unwind is told.
        others: Further failures that came with it.
    """

    error: BaseException
    why: Why
    others: tuple[BaseException, ...] = ()


class Endings:
    """Sees to it that a run closes once, and only after its unwind."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._ending: asyncio.Future[BaseException] | None = None
        self._main_waits = False
        self._continuing = False

    async def of_run(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Await the run method and end the run as its outcome says."""
        try:
            result = await body
        except workflow.ContinueAsNewError:
            probe_eviction()
            await self._close_instead()
            await self._settle_to_continue()
            await self._close_instead()
            await self._hand_over()
            raise
        except (Exception, asyncio.CancelledError) as err:
            probe_eviction()
            ending = classify(err, self._run)
            if ending is None:
                raise
            if self._ending is not None:
                self._run.also_failed.append(error_type(err))
            await self._close_instead()
            final = await self._end(ending)
            if final is err:
                raise
            raise final from _cause_of(final, ending)
        await self._close_instead()
        return await self._returned(result)

    async def of_signal(self, body: Coroutine[Any, Any, None]) -> None:
        """Await a signal handler; a failure of it ends the run, and so does continuing as new."""
        try:
            await body
        except workflow.ContinueAsNewError:
            probe_eviction()
            if self._ending is None:
                await self._settle_to_continue()
            if self._ending is not None:
                return
            await self._hand_over()
            raise
        except (Exception, asyncio.CancelledError) as err:
            probe_eviction()
            ending = classify(err, self._run)
            if ending is None:
                raise
            if self._ending is not None or self._continuing:
                self._run.also_failed.append(error_type(err))
                return
            final = await self._end(ending)
            if self._main_waits:
                return
            if final is err:
                raise
            raise final from _cause_of(final, ending)

    async def _settle_to_continue(self) -> None:
        """Let what still runs settle before the run continues as new.

        A handler that fails because its call was asked to cancel does not change that. A cancel
        that comes meanwhile is not lost: the run is cancelled and unwinds instead.
        """
        run = self._run
        self._continuing = True
        runs_on = bool(named_calls(run)) and workflow.patched(CONTINUE_PATCH)
        if runs_on or run.lock.locked():
            _, cancelled = await protected(settle_closed(run))
            if cancelled:
                await self.of_run(_raising(asyncio.CancelledError()))

    async def _hand_over(self) -> None:
        """Put what is open into the memo; where that fails the run, it unwinds."""
        if self._run.continuing is None:
            return
        try:
            put_into_memo(self._run, self._run.continuing)
        except ConfigurationError as err:
            await self.of_run(_raising(err))

    async def _close_instead(self) -> None:
        """If a signal handler is ending the run already, wait for it and end as it says."""
        if self._ending is None:
            return
        self._main_waits = True
        while not self._ending.done():
            try:
                await asyncio.wait([self._ending])
            except asyncio.CancelledError:
                probe_eviction()
        raise self._ending.result()

    async def _end(self, ending: Ending) -> BaseException:
        """Unwind for an ending.

        Returns:
            The error to close the run with: the ending's own, or a `CompensationFailedError`.
        """
        run = self._run
        self._ending = run.loop.create_future()
        run.also_failed += [error_type(e) for e in ending.others]
        await self._quiet()
        if self._unwinds(ending.why.trigger):
            await protected(unwind(run, ending.why, ending=True))
        self._close()
        final: BaseException = ending.error
        if run.leftovers() and not isinstance(final, CompensationFailedError):
            final = CompensationFailedError(run.report())
            final.__cause__ = _cause_of(final, ending)
        self._ending.set_result(final)
        return final

    async def _quiet(self) -> None:
        """Let an unwind that is at work end, and let no named call start before the run closes."""
        self._run.closing = True
        self._run.close_unit(())
        if self._run.lock.locked():
            await protected(self._run.idle())

    async def _returned(self, result: Any) -> Any:
        run = self._run
        await self._quiet()
        if run.policy is not None and run.policy.uncommitted == "fail":
            uncommitted = _uncommitted(run)
            if uncommitted and workflow.patched(UNWIND_PATCH):
                await self._fail_uncommitted()
        run.ledger.finish()
        self._close()
        return result

    def _close(self) -> None:
        running = [e.contract.action for e in self._run.ledger.close()]
        if running:
            workflow.logger.warning(
                "the run closes while %s still runs; nothing will undo it", ", ".join(running)
            )

    async def _fail_uncommitted(self) -> None:
        run = self._run
        names = {e.contract.action: e.contract.committer or "" for e in _uncommitted(run)}
        error = UncommittedActionError(names)
        self._ending = run.loop.create_future()
        if run.policy is not None and "node-failure" in run.policy.triggers:
            why = Why("node-failure", error)
            record, _ = await protected(
                unwind(run, why, select=lambda e: e.contract.committer is not None, ending=True)
            )
            if not record.plan and not _uncommitted(run):
                return
        run.ledger.finish()
        self._close()
        if run.leftovers():
            raise CompensationFailedError(run.report()) from error
        raise error

    def _unwinds(self, trigger: str) -> bool:
        policy = self._run.policy
        if policy is None or trigger not in policy.triggers or not needed(self._run):
            return False
        return workflow.patched(UNWIND_PATCH)


async def _raising(error: BaseException) -> None:
    raise error


def classify(error: BaseException, run: Run) -> Ending | None:
    """Tell what an error that left the run method, or a signal handler, means for the run.

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


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


def _closes(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError) or workflow.is_failure_exception(error)


def _trigger(error: BaseException) -> str:
    if workflow.cancellation_reason() is not None and is_cancelled_exception(error):
        return "run-cancel"
    if isinstance(error, (LimitExceededError, asyncio.TimeoutError)):
        return "cap-breach"
    return "node-failure"


def _cause_of(final: BaseException, ending: Ending) -> BaseException | None:
    if final is ending.error:
        return final.__cause__
    if isinstance(ending.error, asyncio.CancelledError):
        return CancelledError("Cancelled")
    return ending.error


def _uncommitted(run: Run) -> list[Entry]:
    return [e for e in run.ledger.open_entries() if e.contract.committer is not None]
