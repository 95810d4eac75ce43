"""How a run ends, and what that calls for (the table of endings in the README)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from temporalio import workflow
from temporalio.exceptions import CancelledError

from agboss_temporal.core.entry import Entry, State
from agboss_temporal.core.plan import Unwind
from agboss_temporal.core.scope import Scope
from agboss_temporal.exceptions import (
    CompensationFailedError,
    ConfigurationError,
    UncommittedActionError,
)
from agboss_temporal.markers import CONTINUE_PATCH, UNWIND_PATCH
from agboss_temporal.run import Run
from agboss_temporal.telemetry.logs import log
from agboss_temporal.undo import Why, error_type
from agboss_temporal.units import Unit
from agboss_temporal.unwind import index_end, needed, probe_eviction, protected, unwind
from agboss_temporal_interceptors.classify import Ending, classify, unjoined
from agboss_temporal_interceptors.continuing import named_calls, put_into_memo, settle_closed
from agboss_temporal_interceptors.handlers import Handlers


class Endings:
    """Sees to it that a run closes once, and only after its unwind."""

    def __init__(self, run: Run, handlers: Handlers) -> None:
        self._run = run
        self._handlers = handlers
        self._ending: asyncio.Future[BaseException] | None = None
        self._main_waits = False

    async def of_run(self, body: Coroutine[Any, Any, Any]) -> Any:
        """Await the run method and end the run as its outcome says."""
        try:
            result = await body
            await self._let_continue()
        except workflow.ContinueAsNewError as err:
            probe_eviction()
            await self._close_instead()
            await self._settle_to_continue()
            await self._close_instead()
            await self._hand_over(err)
            raise
        except (Exception, asyncio.CancelledError) as err:
            probe_eviction()
            ending = classify(err, self._run)
            if ending is None:
                bug = unjoined(err)
                raise bug from bug.__cause__
            if self._run.leaving and ending.why.trigger != "run-cancel":
                ending = await self._unless_continued(ending)
            if self._ending is not None:
                self._run.also_failed.append(error_type(err))
            await self._close_instead()
            final = await self._end(ending)
            if final is err:
                raise
            raise final from _cause_of(final, ending)
        await self._close_instead()
        return await self._returned(result)

    async def of_signal(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        """Await a signal handler; a failure of it ends the run, and so does continuing as new."""
        with self._handlers.unit("signal", name) as unit:
            await self._of_signal(unit, body)

    async def _of_signal(self, unit: Unit, body: Coroutine[Any, Any, None]) -> None:
        try:
            await body
        except workflow.ContinueAsNewError as err:
            probe_eviction()
            if self._ending is None:
                await self._settle_to_continue()
            if self._ending is not None:
                return
            await self._hand_over(err)
            raise
        except (Exception, asyncio.CancelledError) as err:
            probe_eviction()
            ending = classify(err, self._run)
            if ending is None:
                bug = unjoined(err)
                raise bug from bug.__cause__
            if self._ending is not None or self._run.leaving:
                await self._failed_late(unit, ending.error)
                return
            final = await self._end(ending, unit)
            if self._main_waits:
                return
            if final is err:
                raise
            raise final from _cause_of(final, ending)

    async def _failed_late(self, unit: Unit, error: BaseException) -> None:
        """Account for a signal handler that fails while the run ends or continues already."""
        if not isinstance(error, asyncio.CancelledError):
            self._run.also_failed.append(error_type(error))
        await self._handlers.undo(unit, error)

    async def _settle_to_continue(self) -> None:
        """Let what still runs settle before the run continues as new.

        A handler that fails because its call was asked to cancel does not change that; what it did
        is undone, as its caller hears of a failure. A cancel that comes meanwhile is not lost: the
        run is cancelled and unwinds instead.
        """
        run = self._run
        run.leaving = True
        runs_on = bool(named_calls(run)) and workflow.patched(CONTINUE_PATCH)
        if runs_on or run.turns:
            _, cancelled = await protected(settle_closed(run))
            if cancelled and self._ending is None:
                run.leaving = False
                await self.of_run(_raising(asyncio.CancelledError()))

    async def _let_continue(self) -> None:
        """While a signal handler lets the run continue as new, wait: what it asked for comes first.

        Raises:
            asyncio.CancelledError: A cancel came; the run is to end by it.
        """
        run = self._run
        while run.leaving and self._ending is None:
            await workflow.wait_condition(lambda: not run.leaving or self._ending is not None)

    async def _unless_continued(self, ending: Ending) -> Ending:
        """Return how the run ends that fails while a signal handler lets it continue as new.

        Its calls may have been refused because of that, so it ends only if it is not continued.
        """
        try:
            await self._let_continue()
        except asyncio.CancelledError as err:
            probe_eviction()
            return classify(err, self._run) or ending
        return ending

    async def _hand_over(self, error: workflow.ContinueAsNewError) -> None:
        """Put what is open into the memo; where that fails the run, it unwinds."""
        input = self._run.continuing.get(error)
        if input is None:
            return
        try:
            put_into_memo(self._run, input)
        except ConfigurationError as err:
            self._run.leaving = False
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

    async def _end(self, ending: Ending, unit: Unit | None = None) -> BaseException:
        """Unwind for an ending: the handlers at work, then the rest.

        Args:
            ending: The ending.
            unit: The unit of the signal handler whose failure it is.

        Returns:
            The error to close the run with: the ending's own, or a `CompensationFailedError`.
        """
        run = self._run
        run.leaving = False
        self._ending = run.loop.create_future()
        run.also_failed += [error_type(e) for e in ending.others]
        await self._quiet()
        unwinds = self._unwinds(ending.why.trigger)
        if unwinds:
            await self._handlers.stop()
        if unit is not None:
            await self._handlers.undo(unit, ending.error)
        if unwinds:
            await self._unwind(ending.why)
        await self._idle()
        self._close()
        final: BaseException = ending.error
        if run.unwinds.left_behind and not isinstance(final, CompensationFailedError):
            final = CompensationFailedError(run.report())
            final.__cause__ = _cause_of(final, ending)
        self._ending.set_result(final)
        return final

    async def _unwind(self, why: Why, select: Callable[[Entry], bool] | None = None) -> Unwind:
        """Undo what the handlers at work have done, then the rest of what is selected."""
        if left := self._run.left_running.values():
            log(
                logging.WARNING,
                "child_left_running",
                "children that were started with ABANDON go on: %s",
                ", ".join(left),
                children=list(left),
            )
        await self._handlers.stop()
        record, _ = await protected(unwind(self._run, why, Scope(), select=select, ending=True))
        await self._handlers.stop()
        return record

    async def _quiet(self) -> None:
        """Let an unwind that is at work end, and let no named call start before the run closes."""
        self._run.closing = True
        self._run.close_scope(Scope())
        await self._idle()

    async def _idle(self) -> None:
        """Let the unwinds that are at work end: handlers may fail while the run is ending."""
        if self._run.turns:
            await protected(self._run.turns.idle())

    async def _returned(self, result: Any) -> Any:
        run = self._run
        await self._quiet()
        await self._close_instead()
        if run.policy is not None and run.policy.uncommitted == "fail":
            uncommitted = [e for e in run.ledger.open_entries() if _needs_committer(e)]
            if uncommitted and workflow.patched(UNWIND_PATCH):
                await self._fail_unless_committed(uncommitted)
        run.ledger.finish()
        self._close()
        return result

    async def _fail_unless_committed(self, uncommitted: Sequence[Entry]) -> None:
        """Fail a run that returned; not if a committer that was at work has sealed all of it."""
        run = self._run
        error = UncommittedActionError(
            {e.contract.action: e.contract.committer or "" for e in uncommitted}
        )
        self._ending = run.loop.create_future()
        if run.policy is not None and "node-failure" in run.policy.triggers:
            record = await self._unwind(Why("node-failure", error), _needs_committer)
            if not record.plan and all(e.state is State.SEALED for e in uncommitted):
                return
        run.ledger.finish()
        self._close()
        if run.unwinds.left_behind:
            raise CompensationFailedError(run.report()) from error
        raise error

    def _close(self) -> None:
        self._run.ledger.close()
        index_end(self._run)

    def _unwinds(self, trigger: str) -> bool:
        run = self._run
        if run.policy is None or trigger not in run.policy.triggers or not needed(run, Scope()):
            return False
        run.marked = workflow.patched(UNWIND_PATCH)
        return run.marked


async def _raising(error: BaseException) -> None:
    raise error


def _cause_of(final: BaseException, ending: Ending) -> BaseException | None:
    if final is ending.error:
        return final.__cause__
    if isinstance(ending.error, asyncio.CancelledError):
        return CancelledError("Cancelled")
    return ending.error


def _needs_committer(entry: Entry) -> bool:
    return entry.contract.committer is not None
