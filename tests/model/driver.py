"""Runs one program on a real server, move by move, and says what came of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistory,
    WorkflowQueryFailedError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    ChildWorkflowError,
    FailureError,
    TimeoutError,
)
from temporalio.service import RPCError

from agboss_temporal import CompensationReport
from tests.model.interpret import ROOTS, Machine
from tests.model.outcome import Outcome
from tests.model.program import Event, Program, dump
from tests.model.script import Move, Script
from tests.model.stage import STAGES, Order, Stage
from tests.model.watch import Family

_numbers = itertools.count(1)


@dataclass
class Seen:
    """What a server made of a program."""

    outcome: Outcome
    histories: list[WorkflowHistory]


class StalledError(Exception):
    """Something did not happen that had to happen."""


class Drive:
    """One program on its way."""

    def __init__(self, client: Client, queue: str, program: Program, patience: float) -> None:
        self.client = client
        self.queue = queue
        self.program = program
        self.patience = patience
        self.script = Script(program)
        self.stage = Stage(f"p{next(_numbers)}-{queue}")
        self.family = Family(client, self.stage)
        self.trace: list[str] = []
        self.updates: list[asyncio.Task[str]] = []
        self.handle: WorkflowHandle[Any, Any] | None = None

    async def run(self) -> Seen:
        """Drive the program to its end."""
        STAGES[self.stage.root] = self.stage
        workflow = ROOTS[self.program.policy]
        self.handle = await self.client.start_workflow(
            workflow.run,
            args=[dump(self.program)],
            id=self.stage.root,
            task_queue=self.queue,
        )
        self.family.follow(self.stage.root, self.handle.first_execution_run_id or "")
        stalled = ""
        try:
            async with asyncio.timeout(6 * self.patience):
                await self._moves()
        except (StalledError, TimeoutError_) as err:
            stalled = str(err) or f"no end: {self.family.describe()}"
            await self._terminate(stalled)
        finally:
            self._vanish()
        try:
            return await self._seen(stalled)
        finally:
            await self.family.close()
            STAGES.pop(self.stage.root, None)

    async def _moves(self) -> None:
        while True:
            await self._quiet()
            for key in self.family.abandoned():
                self._drop(key)
            if self.family.closed:
                return
            flight = sorted(w.label for w in self.stage.waiting.values())
            move = self.script.move(flight)
            self.trace.append(f"{', '.join(flight)} > {move}")
            if move == Move():
                await self._terminate("stuck")
                continue
            await self._make(move)

    async def _quiet(self) -> None:
        try:
            async with asyncio.timeout(self.patience):
                while not self.family.quiet:
                    self.stage.moved.clear()
                    await self.stage.moved.wait()
                    if self.family.faults:
                        raise StalledError("; ".join(self.family.faults))
        except TimeoutError_ as err:
            raise StalledError(f"stalled: {self.family.describe()}") from err

    async def _make(self, move: Move) -> None:
        if move.event is None:
            self._let_go(move.choice)
        elif move.choice is None:
            await self._arrive(move.event)
        else:
            await self._together(move.choice, move.event)

    def _let_go(self, label: str | None) -> tuple[str, str]:
        key, waiting = next((k, w) for k, w in self.stage.waiting.items() if w.label == label)
        del self.stage.waiting[key]
        waiting.order.set_result(Order(cancelled=self.family.asked_to_cancel(*key)))
        return key

    async def _together(self, label: str, event: Event) -> None:
        """Let a completion and a cancel land in one workflow task: hold one while they arrive."""
        assert self.handle is not None
        self.stage.holding.clear()
        self.stage.release.clear()
        await self._signal(Machine.hold)
        await self._until(lambda: self.stage.holding.is_set())
        key = self._let_go(label)
        # An attempt that is to be repeated arrives again instead.
        while key not in self.stage.waiting and key[1] in await self._pending():
            await asyncio.sleep(0.005)
        await self._arrive(event)
        self.stage.release.set()

    async def _until(self, check: Callable[[], bool]) -> None:
        end = asyncio.get_running_loop().time() + self.patience
        while not check():
            if asyncio.get_running_loop().time() > end:
                raise StalledError("a workflow task did not start")
            await asyncio.sleep(0.003)

    async def _pending(self) -> set[str]:
        assert self.handle is not None
        description = await self.handle.describe()
        return {a.activity_id for a in description.raw_description.pending_activities}

    async def _arrive(self, event: Event) -> None:
        assert self.handle is not None
        if self.family.root.closed:
            return
        if event.kind == "cancel":
            self.family.root.expects_cancel = True
            await self.handle.cancel()
        elif event.kind == "expire":
            await self._signal(Machine.expire, event.which)
        elif event.kind == "signal":
            await self._signal(Machine.poke, event.which)
        else:
            self.family.root.updates_expected += 1
            update = await self.handle.start_update(
                Machine.ask, event.which, wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
            self.updates.append(asyncio.create_task(_answer(update)))

    async def _signal(self, signal: Any, *args: Any) -> None:
        assert self.handle is not None
        self.family.root.signals_expected += 1
        await self.handle.signal(signal, args=args)

    async def _terminate(self, why: str) -> None:
        assert self.handle is not None
        self.family.root.terminated = True
        for watch in self.family.watches:
            if not watch.closed:
                handle = self.client.get_workflow_handle(watch.workflow_id)
                await handle.terminate(why)

    def _drop(self, key: tuple[str, str]) -> None:
        order = self.stage.waiting.pop(key).order
        if not order.done():
            order.set_result(Order(vanish=True))

    def _vanish(self) -> None:
        for key in list(self.stage.waiting):
            self._drop(key)
        self.stage.release.set()

    async def _seen(self, stalled: str) -> Seen:
        assert self.handle is not None
        error = stalled
        try:
            await asyncio.wait_for(self.handle.result(), self.patience)
        except WorkflowFailureError as err:
            error = stalled or kind_of(err.cause)
        description = await self.handle.describe()
        assert description.status is not None
        if description.status == WorkflowExecutionStatus.TERMINATED and not stalled:
            error = ""
        report = CompensationReport()
        if not stalled:
            try:
                async with asyncio.timeout(self.patience):
                    report = await self.handle.query(
                        "agboss.compensation", result_type=CompensationReport
                    )
            except (TimeoutError_, RPCError, WorkflowQueryFailedError) as err:
                error = f"no report: {err!r}"
        updates = await asyncio.wait_for(asyncio.gather(*self.updates), self.patience)
        return Seen(
            Outcome(
                status=description.status.name,
                error=error,
                world=tuple(self.stage.world),
                trace=tuple(self.trace),
                planned=tuple(
                    (e.action, e.outcome, e.verdict or "", e.key.partition("-")[2])
                    for e in report.entries
                ),
                in_doubt=tuple(sorted((d.name, d.kind, d.role) for d in report.in_doubt)),
                report=report.status,
                updates=tuple(updates),
            ),
            await self.family.histories(),
        )


TimeoutError_ = asyncio.TimeoutError


async def _answer(update: Any) -> str:
    try:
        return str(await update.result())
    except Exception as err:
        return kind_of(err.__cause__ or err)


def kind_of(error: BaseException | None) -> str:
    """Describe an error as the reference does: its type, and that of what it wraps."""
    if isinstance(error, (ActivityError, ChildWorkflowError)):
        wrapper = "activity" if isinstance(error, ActivityError) else "child"
        return f"{wrapper}/{kind_of(error.cause)}"
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, CancelledError):
        return "cancelled"
    if isinstance(error, ApplicationError):
        cause = error.cause
        if error.type in ("CompensationFailedError", "JoinFailedError") and cause is not None:
            return f"app/{error.type}/{kind_of(cause)}"
        return f"app/{error.type}"
    if isinstance(error, FailureError):
        return type(error).__name__
    return repr(error)
