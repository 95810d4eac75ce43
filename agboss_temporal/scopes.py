"""``unit`` and ``join``: parts of a run that are undone by themselves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from agboss_temporal import units
from agboss_temporal.core.scope import path_text
from agboss_temporal.exceptions import JoinFailedError
from agboss_temporal.run import Run
from agboss_temporal.undo import Why, error_type
from agboss_temporal.units import Unit
from agboss_temporal.unwind import EXPLICIT, needed, probe_eviction, protected, unwind

T = TypeVar("T")

JOIN: Final = "join"
"""What stands for the trigger where a branch of a join failed."""

SEALED_UNIT: Final = "agboss-sealed"
"""Memo field that tells the history which unit has been sealed."""


def unit(name: str | None = None, *, seal: bool = False) -> AbstractAsyncContextManager[None]:
    """Make a part of the run that is undone by itself.

    Use it as ``async with unit(): ...``. An exception that leaves it, or a cancel, first undoes
    what was opened inside, newest first, and only that; then it goes on unchanged. So an
    ``except`` around a unit needs no undo of its own. A normal exit hands what is open to the
    enclosing unit. Units nest. An action started by a task that outlives its unit belongs to the
    nearest unit that is still open.

    Every exception counts, also one that would only fail the workflow task. What an undo leaves
    behind is in the report, and makes a run that fails later fail with `CompensationFailedError`.
    A cancel that arrives while the unit is undone is raised instead of the exception.

    Args:
        name: How reports name the unit.
        seal: Whether a normal exit seals what is open, so that nothing undoes it any more: for
            loops whose rounds are finished for good. Costs one history event a round.

    Returns:
        The context manager, for one use.

    Raises:
        ConfigurationError: On entry, outside a workflow of a worker with the plugin.
    """
    return _OpenUnit(name, seal)


class _OpenUnit(AbstractAsyncContextManager[None]):
    def __init__(self, name: str | None, seal: bool) -> None:
        self._name = name
        self._seal = seal

    async def __aenter__(self) -> None:
        self._run = Run.current()
        self._unit = self._run.unit.open(self._name)
        self._token = units.enter(self._unit)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        units.leave(self._token)
        cut = False
        if error is None and self._seal:
            self._finish()
        elif isinstance(error, (Exception, asyncio.CancelledError)):
            cut = await undo_unit(self._run, self._unit, Why(EXPLICIT, error))
        self._run.hand_over(self._unit)
        if cut and not isinstance(error, asyncio.CancelledError):
            raise asyncio.CancelledError from error

    def _finish(self) -> None:
        """Seal what is open; history shows it by an event, because no call may follow."""
        if self._run.ledger.seal_unit(self._unit.path):
            workflow.upsert_memo({SEALED_UNIT: path_text(self._unit.path)})


async def join(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Run coroutines side by side, each as a unit: all of them succeed, or none is left standing.

    On the first failure the others are cancelled and awaited, and what any of them had opened is
    undone, newest first across all, before the error is raised. A cancel of the caller does the
    same, and then goes on. When all succeed, what they opened belongs to the enclosing unit.

    Args:
        coroutines: Calls of coroutine functions, not yet started.

    Returns:
        Their results, in the order of the arguments.

    Raises:
        JoinFailedError: A branch failed; its ``__cause__`` is the first error. If that error only
            fails a workflow task (a bug), so does this one when nothing catches it.
        TypeError: Some argument is not a coroutine that can still be started: a handle, a task, a
            future. Nothing was started.
        ConfigurationError: Not in a workflow of a worker with the plugin.
    """
    _refuse_started(coroutines)
    run = Run.current()
    whole = run.unit.open()
    branches = _Branches(run, whole, coroutines)
    cancelled = await branches.wait()
    error = branches.failures[0] if branches.failures else cancelled
    cut = False
    if error is not None:
        _, stopped = await protected(branches.stop())
        cut = await undo_unit(run, whole, Why(JOIN, error)) or stopped
    branches.end()
    if cancelled is not None:
        raise cancelled
    if branches.passing is not None:
        raise branches.passing
    if error is not None:
        final = isinstance(error, ApplicationError) and error.non_retryable
        failed = JoinFailedError(branches.failed_types(), len(coroutines), non_retryable=final)
        failed.__cause__ = error
        if cut:
            raise asyncio.CancelledError from failed
        raise failed
    return branches.results


async def undo_unit(run: Run, whole: Unit, why: Why) -> bool:
    """Undo what is open in a unit that an error leaves, unless the run's own end does it.

    Returns:
        Whether a cancel came meanwhile.
    """
    probe_eviction()
    scope = run.scope(whole.path)
    if run.closing or not needed(run, scope):
        return False
    _, cancelled = await protected(unwind(run, why, scope, label=whole.label))
    return cancelled


class _Branches(Generic[T]):
    """The branches of one join.

    Attributes:
        results: What they returned, in the order of the arguments.
        failures: What they raised, in the order in which they did.
        passing: What a branch raised that is no failure: continuing as new, for instance.
    """

    def __init__(self, run: Run, whole: Unit, bodies: Sequence[Coroutine[Any, Any, T]]) -> None:
        self.results: list[Any] = [None] * len(bodies)
        self.failures: list[BaseException] = []
        self.passing: BaseException | None = None
        self._run = run
        self._running = len(bodies)
        self._settled: asyncio.Future[None] = run.loop.create_future()
        self._units = [whole.open() for _ in bodies] + [whole]
        self._tasks = [asyncio.create_task(self._branch(n, body)) for n, body in enumerate(bodies)]
        if not bodies:
            self._settled.set_result(None)

    async def wait(self) -> asyncio.CancelledError | None:
        """Wait until all have ended or one has failed; return the cancel that came instead."""
        try:
            await self._settled
        except asyncio.CancelledError as err:
            probe_eviction()
            return err
        return None

    async def stop(self) -> None:
        """Cancel those that still run and wait for them."""
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def end(self) -> None:
        """Hand over what they leave open."""
        for each in self._units:
            self._run.hand_over(each)

    def failed_types(self) -> list[str]:
        """Name what failed, without those that were cancelled because of it."""
        first, *others = self.failures
        return [error_type(e) for e in (first, *(e for e in others if not _is_cancel(e)))]

    async def _branch(self, number: int, body: Coroutine[Any, Any, T]) -> None:
        units.enter(self._units[number])
        try:
            self.results[number] = await body
            self._run.hand_over(self._units[number])
        except (Exception, asyncio.CancelledError) as err:
            self.failures.append(err)
        except GeneratorExit:
            raise
        except BaseException as err:
            self.passing = err
        finally:
            self._running -= 1
            over = self.failures or self.passing or not self._running
            if over and not self._settled.done():
                self._settled.set_result(None)


def _is_cancel(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error)


def _refuse_started(coroutines: Sequence[object]) -> None:
    wrong = [
        f"argument {number} is a {type(each).__name__}"
        for number, each in enumerate(coroutines, 1)
        if not inspect.iscoroutine(each) or inspect.getcoroutinestate(each) != inspect.CORO_CREATED
    ]
    if not wrong:
        return
    for each in coroutines:
        if inspect.iscoroutine(each):
            each.close()
    raise TypeError(
        f"join() starts its branches itself, so that each is a unit; {', '.join(wrong)}. Pass "
        "coroutines that have not been started: join(book_flight(...), book_hotel(...))"
    )
