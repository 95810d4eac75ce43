"""Update and signal handlers: each is a unit of its own (rule U4)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import CancelledError

from agboss_temporal import _compat, units
from agboss_temporal.core import wire
from agboss_temporal.core.plan import Unwind
from agboss_temporal.core.scope import Scope, UnitPath
from agboss_temporal.exceptions import CompensationFailedError
from agboss_temporal.markers import HANDLER_PATCH
from agboss_temporal.run import Run
from agboss_temporal.undo import Why
from agboss_temporal.units import Unit
from agboss_temporal.unwind import needed, probe_eviction, protected, unwind
from agboss_temporal_interceptors.classify import classify, unjoined

HANDLER: Final = "handler"
"""What stands for the trigger where a handler failed."""


class Handlers:
    """The handlers of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._at_work: dict[UnitPath, tuple[asyncio.Task[Any], bool]] = {}

    @contextmanager
    def unit(self, kind: _compat.HandlerKind, name: str) -> Iterator[Unit]:
        """Make the unit of a handler that starts in the current task; it is handed over at last."""
        run = self._run
        unit = run.root.open(name)
        task = asyncio.current_task()
        assert task is not None
        run.handlers[unit.path] = None
        self._at_work[unit.path] = (task, _compat.is_abandoned(run.loop, kind, name))
        units.enter(unit)
        try:
            yield unit
        finally:
            run.hand_over(unit)
            run.updates.pop(unit.path, None)
            del run.handlers[unit.path], self._at_work[unit.path]

    async def of_update(self, id: str, name: str, body: Coroutine[Any, Any, Any]) -> Any:
        """Await an update handler: what it did is undone, or its caller is told that it is done."""
        run = self._run
        with self.unit("update", name) as unit:
            run.updates[unit.path] = wire.update_digest(id), None
            try:
                result = await body
                if run.ledger.to_undo(Scope(unit.path)):
                    # What cannot be sent fails the update after this.
                    workflow.payload_converter().to_payloads([result])
            except (Exception, asyncio.CancelledError) as err:
                probe_eviction()
                final = await self._failed(unit, err)
                if final is err:
                    raise
                raise final from final.__cause__
            run.ledger.seal_unit(unit.path, keep_uncommitted=True)
            return result

    async def undo(self, unit: Unit, error: BaseException) -> Unwind | None:
        """Undo what a handler that failed has opened.

        Where history shows that older code did not, it is left to the run.
        """
        run = self._run
        scope = Scope(unit.path)
        if not needed(run, scope):
            return None
        if not run.marked and not workflow.patched(HANDLER_PATCH):
            return None
        why = Why(HANDLER, error)
        record, _ = await protected(unwind(run, why, scope, label=unit.label, ending=True))
        return record

    async def stop(self) -> None:
        """Cancel the other handlers at work, and wait for those that may not be abandoned."""
        own = asyncio.current_task()
        others = [each for each in self._at_work.values() if each[0] is not own]
        for task, _ in others:
            task.cancel()
        awaited = [task for task, abandoned in others if not abandoned]
        if awaited:
            await protected(asyncio.wait(awaited))

    async def _failed(self, unit: Unit, error: BaseException) -> BaseException:
        """Undo what a failed update handler did; return what its caller is told."""
        ending = classify(error, self._run)
        if ending is None:
            return unjoined(error)
        record = await self.undo(unit, ending.error)
        if record is not None and record.left_behind:
            final = CompensationFailedError(self._run.report())
            cancelled = isinstance(ending.error, asyncio.CancelledError)
            final.__cause__ = CancelledError("Cancelled") if cancelled else ending.error
            return final
        return ending.error
