"""Walking from a closed run down to its children: each is asked itself how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from temporalio.api.common.v1 import Payload

from agboss_temporal.core.attempts import Attempt, Attempts
from agboss_temporal.core.choosing import choose
from agboss_temporal.core.entry import State
from agboss_temporal.core.recovery import RECOVERY_TYPE
from agboss_temporal.core.run_ledger import ChildRun, RunEntry, RunLedger
from agboss_temporal.recovery.attempts import read_attempt
from agboss_temporal.recovery.executions import Execution
from agboss_temporal.recovery.runs import Runs


@dataclass(slots=True)
class Walked:
    """What a walk has found.

    Attributes:
        runs: Ledgers of closed runs that may have left something open, the first at the top.
        handed: What workflows have done to which a run's own unwind has handed a part.
        notes: What only a person can judge.
    """

    runs: list[RunLedger] = field(default_factory=list)
    handed: list[Attempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, other: Walked) -> None:
        """Add what was found further down."""
        self.runs += other.runs
        self.handed += other.handed
        self.notes += other.notes


async def walk(runs: Runs, ledger: RunLedger, elsewhere: frozenset[str] = frozenset()) -> Walked:
    """Walk from a closed run to its children, and on to theirs.

    Args:
        runs: Where they are.
        ledger: The run's ledger.
        elsewhere: Ids of children that belong to another run by now.

    Raises:
        RecoveryRefused: A child cannot be read, and nothing is guessed.
    """
    return await _Walk(runs).from_run(ledger, elsewhere)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What a child says of itself: how it ended, if anybody knows, and what it answered."""

    how: str | None
    below: Walked = field(default_factory=Walked)
    result: Payload | None = None
    closed_at: datetime | None = None


class _Walk:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._seen: set[str] = set()

    async def from_run(self, ledger: RunLedger, elsewhere: frozenset[str] = frozenset()) -> Walked:
        self._seen.add(ledger.run_id)
        found = Walked()
        children = [c for c in ledger.children if c.workflow_id not in elsewhere]
        handed = [c for c in children if c.takes_over or c.workflow_type == RECOVERY_TYPE]
        for attempt in await asyncio.gather(*map(self._handed, handed)):
            found.handed += [attempt] if attempt is not None else []
        others = [c for c in children if c not in handed and c.end not in _DONE]
        fates = await asyncio.gather(*map(self._ask, others))
        for child, fate in zip(others, fates, strict=True):
            ledger = replace(ledger, entries=_settled(ledger.entries, child, fate))
            found.add(fate.below)
        found.runs.insert(0, ledger)
        return found

    async def _handed(self, child: ChildRun) -> Attempt | None:
        return await read_attempt(self._runs, child.workflow_id, child.run_id, decides=True)

    async def _ask(self, child: ChildRun) -> _Fate:
        """Ask a child, through its continuations, what became of it."""
        who = f"child {child.workflow_id} ({child.workflow_type})"
        if child.namespace not in ("", self._runs.client.namespace):
            note = f"{who} is in namespace {child.namespace}: look there what it has left open"
            return _Fate(None, Walked(notes=[note]))
        execution = await self._runs.describe(child.workflow_id, child.run_id)
        if execution is None:
            return _Fate(None, Walked(notes=_gone(child, who)))
        below = Walked()
        execution, ledger = await self._last(execution, who, below)
        if execution.how == "completed":
            return await self._completed(execution, below)
        if ledger is not None:
            await self._closed(ledger, who, below)
        elif child.parent_close_policy != "abandon" or child.key is not None:
            below.notes.append(f"{who} still runs: cancel it, it undoes itself; then plan again")
        return _Fate(execution.how or "open", below)

    async def _last(
        self, execution: Execution, who: str, below: Walked
    ) -> tuple[Execution, RunLedger | None]:
        """Go to the last run of a child's chain; only what continues as new hands entries on.

        Returns:
            The run, and its ledger if it is closed and has not finished.
        """
        carried: dict[str, RunEntry] = {}
        while execution.how not in (None, "completed"):
            ledger = (await self._runs.read(execution.workflow_id, execution.run_id)).ledger
            ledger = _with_times(ledger, carried)
            following = ledger.end.next_run_id if ledger.end else None
            then = (
                await self._runs.describe(execution.workflow_id, following) if following else None
            )
            if then is None:
                return execution, ledger
            carried = {entry.key: entry for entry in ledger}
            if execution.how != "continued_as_new":
                below.notes += _left_behind(ledger, who, then.run_id)
            execution = then
        return execution, None

    async def _completed(self, execution: Execution, below: Walked) -> _Fate:
        found = await self._runs.history(execution.workflow_id, execution.run_id)
        result = None
        if found is not None:
            end = found.events[-1].workflow_execution_completed_event_attributes
            result = next(iter(end.result.payloads), None)
        return _Fate("completed", below, result, execution.closed_at)

    async def _closed(self, ledger: RunLedger, who: str, below: Walked) -> None:
        if ledger.run_id in self._seen:
            return
        newest = await self._runs.describe(ledger.workflow_id)
        if newest is not None and newest.run_id != ledger.run_id:
            below.notes += _left_behind(ledger, who, newest.run_id)
        else:
            below.add(await self.from_run(ledger))


def _with_times(ledger: RunLedger, earlier: Mapping[str, RunEntry]) -> RunLedger:
    """Say of what an earlier run has carried over when it was started and settled there."""
    entries = [
        replace(
            entry,
            scheduled_at=earlier[entry.key].scheduled_at,
            settled_at=earlier[entry.key].settled_at,
        )
        if entry.carried and entry.key in earlier
        else entry
        for entry in ledger
    ]
    return replace(ledger, entries=tuple(entries))


_DONE: Final = ("completed", "not_started")


def _settled(entries: Iterable[RunEntry], child: ChildRun, fate: _Fate) -> tuple[RunEntry, ...]:
    """Correct what the parent's history says of a child that is an action, by the child's own."""
    found = []
    for entry in entries:
        if entry.key != child.key or entry.state is not State.IN_DOUBT or fate.how is None:
            found.append(entry)
        elif fate.how == "completed":
            found.append(
                replace(
                    entry,
                    state=State.OPEN,
                    doubt=None,
                    result=fate.result,
                    settled_at=fate.closed_at,
                )
            )
        # Else it did not take effect as a whole; what it did is found in its own ledger.
    return tuple(found)


def _gone(child: ChildRun, who: str) -> list[str]:
    if child.run_id is None:
        return []  # It was about to be started, and was not.
    return [f"{who} is no longer there: nobody knows what it has left open"]


def _left_behind(ledger: RunLedger, who: str, newer: str) -> list[str]:
    found = choose(ledger, Attempts())
    if not found.keys:
        return []
    return [
        f"{who}, run {ledger.run_id}, has left {len(found.keys)} open, and run {newer} is newer "
        "and may build on it: look at it, then recover that run by itself"
    ]
