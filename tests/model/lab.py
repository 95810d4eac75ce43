"""Runs many programs at once on one server, replays what they left, and compares."""

from __future__ import annotations

import asyncio
import uuid
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from agboss_temporal import CompensationPlugin
from tests.model.acts import ACTIVITIES
from tests.model.driver import Drive
from tests.model.evictions import watched
from tests.model.interpret import WORKFLOWS
from tests.model.outcome import Outcome, difference
from tests.model.program import Program, text
from tests.model.reference import expected
from tests.support import agreement

AT_ONCE = 40
PATIENCE = 20.0


@dataclass(frozen=True)
class Mismatch:
    """A program of which a server made something else than the reference."""

    program: Program
    what: str

    def __str__(self) -> str:
        return f"{self.what}\n{text(self.program)}"


class Lab:
    """A client with the plugin, on a server.

    Args:
        client: A client without the plugin.
        patience: How long to wait, in seconds, for a run to come to rest.
    """

    def __init__(self, client: Client, patience: float = PATIENCE) -> None:
        self.plugin = CompensationPlugin()
        config = client.config()
        config["plugins"] = [self.plugin]
        self.client = Client(**config)
        self.patience = patience
        self.stuck = False

    @asynccontextmanager
    async def _worker(self, cache: int) -> AsyncIterator[str]:
        queue = f"model-{uuid.uuid4().hex[:8]}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worker = Worker(
                self.client,
                task_queue=queue,
                workflows=WORKFLOWS,
                activities=ACTIVITIES,
                max_cached_workflows=cache,
                max_concurrent_activities=1000,
                max_concurrent_workflow_tasks=2 * AT_ONCE,
                # A workflow task that is held occupies a thread.
                workflow_task_executor=ThreadPoolExecutor(3 * AT_ONCE),
                workflow_runner=UnsandboxedWorkflowRunner(),
            )
            # One that is held is no deadlock, and debug_mode would run it on this very loop.
            assert worker._workflow_worker is not None
            worker._workflow_worker._deadlock_timeout_seconds = None
            running = asyncio.create_task(worker.run())
            try:
                yield queue
            finally:
                # A run that cannot be evicted keeps a worker from shutting down.
                ending = asyncio.create_task(worker.shutdown())
                await asyncio.wait([ending], timeout=self.patience)
                self.stuck = not ending.done()
                for task in (ending, running):
                    if self.stuck:
                        task.cancel()

    async def compare(self, programs: Sequence[Program], *, cache: int) -> list[Mismatch]:
        """Run programs; return those that differ from the reference or do not replay."""
        histories: list[tuple[Program, WorkflowHistory]] = []
        found: list[Mismatch] = []
        free = asyncio.Semaphore(AT_ONCE)

        owners: dict[str, Program] = {}

        async def one(program: Program, queue: str) -> None:
            async with free:
                wanted = expected(program)
                assert wanted is not None, "undetermined"
                try:
                    seen = await Drive(self.client, queue, program, self.patience).run()
                except TimeoutError:
                    # The server or a worker did not answer although the run was terminated.
                    found.append(Mismatch(program, "does not come to rest"))
                    return
            owners.update((history.workflow_id, program) for history in seen.histories)
            histories.extend((program, history) for history in seen.histories)
            if what := difference(wanted, seen.outcome):
                found.append(Mismatch(program, what))

        with watched() as tried:
            async with self._worker(cache) as queue:
                await asyncio.gather(*(one(program, queue) for program in programs))
        found += [
            Mismatch(owners[id], f"while it was evicted it tried to {', '.join(what)}")
            for id, what in tried.items()
        ]
        if self.stuck:
            return found or [Mismatch(programs[0], "the worker does not shut down")]
        return found + await self._replay(histories)

    async def _replay(self, histories: list[tuple[Program, WorkflowHistory]]) -> list[Mismatch]:
        async def each() -> AsyncIterator[WorkflowHistory]:
            for _, history in histories:
                yield history

        replayer = Replayer(
            workflows=WORKFLOWS,
            plugins=[self.plugin],
            data_converter=self.client.data_converter,
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        with warnings.catch_warnings(), agreement.watching() as seen:
            warnings.simplefilter("ignore")
            done = await replayer.replay_workflows(each(), raise_on_replay_failure=False)
        found = []
        for program, history in histories:
            if history.run_id in done.replay_failures:
                failure = done.replay_failures[history.run_id]
                found.append(Mismatch(program, f"does not replay: {failure!r}"))
            elif what := await self._disagreement(history, seen):
                found.append(Mismatch(program, f"its history reads otherwise: {what}"))
        return found

    async def _disagreement(
        self, history: WorkflowHistory, seen: Mapping[str, agreement.Seen]
    ) -> str | None:
        """Say where what the history tells by itself differs from what the run had in memory."""
        try:
            await agreement.check(history, seen, self.client.data_converter)
        except AssertionError as error:
            return str(error) or "an assertion of the comparison failed"
        return None


def determined(programs: Sequence[Program]) -> list[Program]:
    """Keep the programs that decide their outcome."""
    return [program for program in programs if expected(program) is not None]


__all__ = ["Lab", "Mismatch", "Outcome", "determined"]
