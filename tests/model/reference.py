"""What must come of a program, computed from the program alone.

It follows DESIGN's meaning and shares no code with the library: it runs the program on an event
loop of its own, with calls that do nothing but settle when the script says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.model import program as p
from tests.model.outcome import Outcome
from tests.model.reference_ledger import Call, Undetermined
from tests.model.reference_run import Run
from tests.model.script import Move, Script

AUTOMATIC = ("lost_before", "lost_after", "unstarted")
"""Outcomes that come by themselves, before anything else moves."""


def expected(program: p.Program) -> Outcome | None:
    """Say what must come of a program; ``None`` if it leaves something undetermined."""
    # A thread of its own, because the caller may be in an event loop.
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(_expected, program).result()


def _expected(program: p.Program) -> Outcome | None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    try:
        return loop.run_until_complete(Family(program).play())
    except Undetermined:
        return None
    finally:
        # What still waits belongs to runs that are closed; it must not go on.
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()


class Family:
    """The runs of one program, and the moves that keep them going."""

    def __init__(self, program: p.Program) -> None:
        self.program = program
        self.script = Script(program)
        self.runs: list[Run] = []
        self.world: list[str] = []
        self.trace: list[str] = []
        self.updates: list[str] = []
        self.mail: list[tuple[object, Callable[[], None]]] = []
        Undetermined.seen.why = ""

    def did(self, what: str) -> None:
        self.world.append(what)

    def send(self, to: object, message: Callable[[], None]) -> None:
        """Send a message from one run to another: it arrives when nothing else moves."""
        self.mail.append((to, message))

    def _deliver(self) -> bool:
        """Deliver what was sent; tell whether there was anything."""
        mail, self.mail = self.mail, []
        if len({id(to) for to, _ in mail}) < len(mail):
            raise Undetermined("two messages race to one run")
        for _, message in mail:
            message()
        return bool(mail)

    @property
    def root(self) -> Run:
        return [run for run in self.runs if not run.place][-1]

    def child(self, node: p.Child, place: str) -> Run:
        """Start a child."""
        return self._add(Run(self, p.Program(node.body), f"{place}/", self.child))

    def _add(self, run: Run) -> Run:
        self.runs.append(run)
        run.launch()
        return run

    async def play(self) -> Outcome:
        """Make all moves."""
        self._add(Run(self, self.program, "", self.child))
        while True:
            await self._drain()
            self._continue()
            await self._drain()
            self._check()
            starting = any(c.child and not c.sent for run in self.runs for c in run.flight)
            for run in self.runs:
                run.rest()
            if self._deliver():
                continue
            open_runs = [run for run in self.runs if not run.status]
            if not open_runs:
                return self._outcome()
            calls = [(run, c) for run in open_runs for c in run.flight]
            automatic = [(r, c) for r, c in calls if c.outcome in AUTOMATIC]
            if len(automatic) > 1 or (automatic and starting):
                raise Undetermined("two time out at once, or one while a child starts")
            if automatic:
                automatic[0][0].let_go(automatic[0][1])
                continue
            if not self._move([(r, c) for r, c in calls if c.child is None]):
                return self._outcome()

    def _continue(self) -> None:
        root = self.root
        if root.status == "CONTINUED_AS_NEW" and not root.continued:
            root.continued = True
            run = Run(self, self.program, "", self.child)
            run.generation = root.generation + 1
            run.adopt(root.carried())
            self._add(run)

    def _move(self, calls: list[tuple[Run, Call]]) -> bool:
        flight = sorted(call.label for _, call in calls)
        if len(set(flight)) != len(flight):
            raise Undetermined("two activities in flight have one label")
        move = self.script.move(flight)
        self.trace.append(f"{', '.join(flight)} > {move}")
        if move == Move():
            self.root.status = "TERMINATED"
            return False
        if move.event is not None:
            self._arrive(move.event)
        for run, call in calls:
            if call.label == move.choice:
                run.let_go(call)
        return True

    def _arrive(self, event: p.Event) -> None:
        if self.root.status:
            return
        if event.kind == "cancel":
            self.root.cancel()
        elif event.kind == "expire":
            self.root.expire(event.which)
        elif event.kind == "signal":
            self.root.call(event.which, None)
        else:
            self.updates.append("app/AcceptedUpdateCompletedWorkflow")
            self.root.call(event.which, partial(self.updates.__setitem__, len(self.updates) - 1))

    async def _drain(self) -> None:
        loop: Any = asyncio.get_running_loop()
        await asyncio.sleep(0)
        while loop._ready:
            await asyncio.sleep(0)

    def _check(self) -> None:
        for run in self.runs:
            if run.task.done() and run.task.exception() is not None:
                run.task.result()
        if Undetermined.seen.why:
            raise Undetermined(Undetermined.seen.why)

    def _outcome(self) -> Outcome:
        run = self.root
        ledger = run.ledger
        doubts = [(e.name, e.doubt, "action") for e in ledger.entries if e.state == "in_doubt"]
        doubts += [(name, doubt, "committer") for name, doubt in ledger.committers_in_doubt]
        return Outcome(
            status=run.status,
            error=run.error,
            world=tuple(self.world),
            trace=tuple(self.trace),
            planned=tuple(
                (pl.entry.name, pl.outcome, pl.verdict, str(pl.entry.key)) for pl in ledger.planned
            ),
            in_doubt=tuple(sorted(doubts)),
            report=ledger.status,
            updates=tuple(self.updates),
        )
