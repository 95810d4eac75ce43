"""Planning a recovery: what is still open in a closed run and its children."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client

from agboss_temporal.core.attempts import Attempt, Attempts
from agboss_temporal.core.choosing import (
    Candidate,
    Choice,
    Placed,
    choose,
    plan_order,
    settled_order,
)
from agboss_temporal.core.errors import RecoveryRefused
from agboss_temporal.core.recovery import RECOVERY_TYPE
from agboss_temporal.history.contracts import Declared
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.recovery.attempts import attempts_of, family_of
from agboss_temporal.recovery.executions import Execution
from agboss_temporal.recovery.families import Walked, walk
from agboss_temporal.recovery.resets import heirs
from agboss_temporal.recovery.runs import Read, Runs, not_found
from agboss_temporal.recovery.types import Plan, PlannedUndo

_CAUSES: Final = {
    "terminated": "TerminatedError",
    "timed_out": "TimeoutError",
    "cancelled": "CancelledError",
}
"""What an undo is told of how its run was closed."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plan, and what a recovery needs to execute it.

    Attributes:
        plan: What it shows.
        placed: What is to be undone, in the order in which it settled.
        order: The places of these in the order of the plan.
        keys: Keys of all that was open when the runs were closed.
        family: By what recoveries that must know of each other are named.
        attempts: What recoveries of the family have done, oldest first.
        at_work: The workflows that are undoing more of it.
        read: The run.
    """

    plan: Plan
    placed: Sequence[Placed]
    order: Sequence[int]
    keys: frozenset[str]
    family: tuple[str, str]
    attempts: Sequence[Attempt]
    at_work: Sequence[Attempt]
    read: Read

    @property
    def cause(self) -> str | None:
        """Type of the error that an undo is told of."""
        end = self.read.ledger.end
        return None if end is None else end.failure_type or _CAUSES.get(end.how)


async def plan(
    client: Client,
    workflow_id: str,
    run_id: str | None = None,
    *,
    contracts: Iterable[Declared] | None = None,
    policy: CompensationPolicy | None = None,
) -> Plan:
    """Show what a recovery of a closed run would undo. Changes nothing.

    Args:
        client: A client, with the data converter of the workers and the plugin, whose policy
            holds for the undos.
        workflow_id: The workflow.
        run_id: The run; by default the newest.
        contracts: What is declared, for calls of before the plugin was adopted; as in
            `history.ledger`.
        policy: In place of the plugin's.

    Returns:
        The plan. It holds names and keys, never a payload. It may be empty.

    Raises:
        RecoveryRefused: The run is open, has finished, continued as new, is itself a recovery, is
            not there, or something of it cannot be read: nothing is guessed.
    """
    runs = Runs(client, None if contracts is None else tuple(contracts))
    return (await draw(runs, workflow_id, run_id, policy_of(client, policy))).plan


def policy_of(client: Client, policy: CompensationPolicy | None) -> CompensationPolicy:
    """Return the policy for undos: the given one, that of the client's plugin, or the default."""
    if policy is not None:
        return policy
    for plugin in client.config().get("plugins") or ():
        found = getattr(plugin, "policy", None)
        if isinstance(found, CompensationPolicy):
            return found
    return CompensationPolicy()


async def draw(
    runs: Runs, workflow_id: str, run_id: str | None, policy: CompensationPolicy
) -> Drawn:
    """Draw the plan of a recovery as things stand now."""
    execution = await runs.describe(workflow_id, run_id)
    if execution is None:
        raise not_found(workflow_id, run_id)
    _refuse_open(execution)
    read = await runs.read(workflow_id, execution.run_id)
    _refuse_continued(read)
    newest = execution if run_id is None else await runs.describe(workflow_id)
    newer = None if newest is None or newest.run_id == execution.run_id else newest.run_id
    elsewhere: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    if newer is not None:
        for heir in await heirs(runs, read):
            elsewhere |= {entry.key for entry in heir}
            children |= {child.workflow_id for child in heir.children}
    walked = await walk(runs, read.ledger, children)
    choice = _choose(walked, Attempts(walked.handed), elsewhere)
    family = await family_of(runs, read)
    attempts = await attempts_of(runs, family) if choice.keys else []
    choice = _choose(walked, Attempts([*walked.handed, *attempts]), elsewhere)
    placed = settled_order(choice.candidates)
    order = plan_order(placed)
    own = [a for a in attempts if not choice.keys.isdisjoint(a.tried)]
    return Drawn(
        plan=Plan(
            workflow_id=workflow_id,
            run_id=execution.run_id,
            undos=tuple(_undo(placed[place].candidate, policy) for place in order),
            under_way=tuple(choice.at_work),
            recovered_by=tuple(a.workflow_id for a in own if a.workflow_id not in choice.at_work),
            newer_run_id=newer,
            notes=(*choice.notes, *walked.notes),
        ),
        placed=placed,
        order=order,
        keys=frozenset(choice.keys),
        family=family,
        attempts=attempts,
        at_work=[a for a in (*walked.handed, *attempts) if a.workflow_id in choice.at_work],
        read=read,
    )


def _choose(walked: Walked, attempts: Attempts, elsewhere: frozenset[str]) -> Choice:
    found = Choice()
    for ledger in walked.runs:
        found.add(choose(ledger, attempts, elsewhere))
    return found


def _undo(candidate: Candidate, policy: CompensationPolicy) -> PlannedUndo:
    entry, run = candidate.entry, candidate.run
    queue = entry.contract.undo_options.get("task_queue") or policy.undo_options.get("task_queue")
    return PlannedUndo(
        key=entry.key,
        action=entry.contract.action,
        undo=entry.contract.undo or "",
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        outcome=entry.outcome,
        task_queue=queue or entry.task_queue or run.task_queue,
        started_at=candidate.started_at,
    )


def _refuse_open(execution: Execution) -> None:
    who = f"{execution.workflow_id}, run {execution.run_id},"
    if execution.workflow_type == RECOVERY_TYPE:
        raise RecoveryRefused(
            "recovery",
            f"{who} undoes for another run; recover that one again, and it goes on from here",
        )
    if execution.how is None:
        raise RecoveryRefused(
            "open", f"{who} is open; cancel it, and it undoes what it did, or terminate it first"
        )
    if execution.how == "completed":
        raise RecoveryRefused(
            "finished", f"{who} has finished: that sealed what it did, and nothing undoes it"
        )


def _refuse_continued(read: Read) -> None:
    ledger = read.ledger
    if ledger.end is None:
        raise RecoveryRefused(
            "unreadable",
            f"the history of {ledger.workflow_id}, run {ledger.run_id}, lacks its end; try again",
        )
    if ledger.end.how == "continued_as_new":
        raise RecoveryRefused(
            "continued-as-new",
            f"{ledger.workflow_id}, run {ledger.run_id}, continued as new, and what was open went "
            f"along: plan run {ledger.end.next_run_id} instead",
        )
