"""Recovering a run: one workflow after another executes what is planned."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RawValue, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from agboss_temporal.core import recovery
from agboss_temporal.core.attempts import Attempt, Tried
from agboss_temporal.core.budget import MAX_HANDED_OVER
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.errors import RecoveryRefused
from agboss_temporal.core.portions import Portion, portion
from agboss_temporal.core.recovery import RECOVERY_TYPE, RecoveryPlan
from agboss_temporal.history.contracts import Declared
from agboss_temporal.plan_input import as_payload, payload_limit, policy_to_json
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.recovery.attempts import recovery_id
from agboss_temporal.recovery.packing import packed
from agboss_temporal.recovery.planning import Drawn, draw, policy_of
from agboss_temporal.recovery.runs import Runs
from agboss_temporal.recovery.types import Recovery, UndoResult

TRIGGER: Final = "operator-request"
"""What an undo is told that started it."""

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


async def recover(
    client: Client,
    workflow_id: str,
    run_id: str | None = None,
    *,
    contracts: Iterable[Declared] | None = None,
    on_newer_run: bool = False,
    wait: bool = True,
    task_queue: str | None = None,
    policy: CompensationPolicy | None = None,
) -> Recovery:
    """Undo what a closed run, and its children, have left open.

    A workflow of the type ``agboss.recovery``, which the plugin registers, runs the undos with the
    recorded payloads and the same keys, on the queues of their actions. More than 500 undos, or
    more than fit into an input, are several such workflows, one after another. Called again, or
    twice at once, it undoes nothing twice: it reads what earlier ones have done, goes on with what
    is left, and waits for one that is at work.

    Args:
        client: A client, with the data converter of the workers and the plugin, whose policy
            holds for the undos.
        workflow_id: The workflow.
        run_id: The run; by default the newest.
        contracts: As in `plan`.
        on_newer_run: Also if there is a newer run of the same id, which may build on what would be
            undone.
        wait: Whether to wait for the end. Without, only the first workflow is started, or none
            while one is at work.
        task_queue: Queue of the recovery workflow; by default that of the run.
        policy: In place of the plugin's: order, parallelism, bounds.

    Returns:
        What became of each undo, those of earlier recoveries among them.

    Raises:
        RecoveryRefused: As in `plan`; or nothing is open, or there is a newer run. Nothing was
            started.
    """
    options = Options(
        Runs(client, None if contracts is None else tuple(contracts)),
        policy_of(client, policy),
        on_newer_run=on_newer_run,
        wait=wait,
        task_queue=task_queue,
    )
    return await execute(options, await draw(options.runs, workflow_id, run_id, options.policy))


@dataclass(frozen=True, slots=True)
class Options:
    """How to recover, as the arguments of `recover` say."""

    runs: Runs
    policy: CompensationPolicy
    on_newer_run: bool = False
    wait: bool = True
    task_queue: str | None = None


@dataclass(slots=True)
class _Progress:
    """What one call has done so far.

    Attributes:
        tried: Keys of what it has tried, or has waited for others to try.
        stopped: Whether an undo gave up, and the policy leaves the rest.
        notes: What cannot be tried.
    """

    tried: set[str] = field(default_factory=set)
    stopped: bool = False
    notes: list[str] = field(default_factory=list)


async def execute(options: Options, drawn: Drawn) -> Recovery:
    """Execute a plan, part by part, and draw it again before each."""
    _refuse(drawn, options)
    progress = _Progress()
    while True:
        rest = [place for place in drawn.order if _key(drawn, place) not in progress.tried]
        if drawn.at_work:
            # What is at work may be newer than what is left: nothing overtakes it.
            if not options.wait:
                return _told(drawn, progress, drawn.attempts, left=len(rest))
            for each in drawn.at_work:
                # What an interrupted unwind has left is tried once more, another recovery's not.
                progress.tried |= each.tried.keys() if each in drawn.attempts else set()
            await _wait(options, drawn.at_work)
        elif rest and not progress.stopped:
            part = await _part(options, drawn, rest)
            if part is None:
                progress.tried.add(_key(drawn, rest[0]))
                progress.notes.append(_too_large(drawn, rest[0]))
                continue
            attempt = await _start(options, drawn, part, rest[: part.count])
            if attempt is not None:
                progress.tried |= attempt.tried.keys()
                if not options.wait:
                    left = len(rest) - part.count
                    return _told(drawn, progress, [*drawn.attempts, attempt], left=left)
                await _wait(options, [attempt])
        else:
            return _told(drawn, progress, drawn.attempts, not_run=rest)
        plan = drawn.plan
        drawn = await draw(options.runs, plan.workflow_id, plan.run_id, options.policy)
        progress.stopped = options.policy.on_exhausted == "stop" and _has_failed(drawn, progress)


def _refuse(drawn: Drawn, options: Options) -> None:
    plan = drawn.plan
    who = f"{plan.workflow_id}, run {plan.run_id}"
    if not (plan.undos or plan.under_way or plan.recovered_by):
        notes = "".join(f"; {note}" for note in plan.notes)
        raise RecoveryRefused("nothing-open", f"nothing that can be undone is open in {who}{notes}")
    if plan.undos and plan.newer_run_id is not None and not options.on_newer_run:
        raise RecoveryRefused(
            "newer-run",
            f"run {plan.newer_run_id} is newer than {who}, and may build on what would be undone: "
            "look at it, then confirm with on_newer_run=True",
        )


async def _start(
    options: Options, drawn: Drawn, part: Portion, places: Sequence[int]
) -> Attempt | None:
    """Start the workflow that executes a part.

    Returns:
        The attempt; ``None`` if another call was faster.
    """
    client = options.runs.client
    new_id = recovery_id(drawn.family, len(drawn.attempts) + 1)
    try:
        handle = await client.start_workflow(
            RECOVERY_TYPE,
            as_payload(part.data),
            id=new_id,
            task_queue=options.task_queue or drawn.read.ledger.task_queue,
            result_type=RawValue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            static_summary=f"undoes {part.count} actions",
        )
    except WorkflowAlreadyStartedError:
        return None
    tried = {_key(drawn, place): _untried(drawn, place) for place in places}
    return Attempt(new_id, handle.result_run_id or "", is_open=True, tried=tried)


async def _part(options: Options, drawn: Drawn, rest: Sequence[int]) -> Portion | None:
    """Write the plan of the first of what is left; ``None`` if not even one entry fits."""
    client = options.runs.client
    first = rest[:MAX_HANDED_OVER]
    rows = [await packed(options.runs, drawn.placed[place]) for place in first]
    return portion(
        [len(row.raw or b"") + sum(map(len, row.args)) for row in rows],
        MAX_HANDED_OVER,
        payload_limit(client.data_converter),
        lambda count: recovery.encode_plan(_plan(options, drawn, first[:count], rows[:count])),
    )


def _too_large(drawn: Drawn, place: int) -> str:
    candidate = drawn.placed[place].candidate
    return (
        f"what was recorded for {candidate.entry.contract.action} {candidate.entry.key} of "
        f"{candidate.run.workflow_id} is too large for the plan of a recovery: undo it by hand"
    )


def _plan(
    options: Options, drawn: Drawn, places: Sequence[int], rows: Sequence[Carried]
) -> RecoveryPlan:
    """Write the plan of one part: places are in the plan's order, entries go as they settled."""
    settled = sorted(zip(places, rows, strict=True), key=lambda each: each[0])
    known = [place for place, _ in settled]
    policy = policy_to_json(options.policy)
    if options.policy.total_timeout is not None:
        policy["total_timeout"] = options.policy.total_timeout.total_seconds()
    return RecoveryPlan(
        workflow_id=drawn.plan.workflow_id,
        run_id=drawn.plan.run_id,
        entries=[
            row if row.after is None else replace(row, after=bisect_left(known, row.after))
            for _, row in settled
        ],
        order=[bisect_left(known, place) for place in places],
        unwind=len(drawn.attempts) + 1,
        trigger=TRIGGER,
        cause=drawn.cause,
        policy=policy,
        fails=True,
    )


async def _wait(options: Options, attempts: Sequence[Attempt]) -> None:
    for attempt in attempts:
        handle = options.runs.client.get_workflow_handle(
            attempt.workflow_id, run_id=attempt.run_id or None, result_type=RawValue
        )
        try:
            await handle.result()
        except WorkflowFailureError:
            continue  # What it left behind, its history says.


def _key(drawn: Drawn, place: int) -> str:
    return drawn.placed[place].candidate.entry.key


def _untried(drawn: Drawn, place: int) -> Tried:
    entry, run = drawn.placed[place].candidate.entry, drawn.placed[place].candidate.run
    return Tried(entry.key, entry.contract.action, entry.contract.undo, run.workflow_id)


def _has_failed(drawn: Drawn, progress: _Progress) -> bool:
    return any(_key(drawn, place) in progress.tried for place in drawn.order)


def _told(
    drawn: Drawn,
    progress: _Progress,
    attempts: Sequence[Attempt],
    *,
    left: int = 0,
    not_run: Sequence[int] = (),
) -> Recovery:
    mine = [a for a in attempts if not drawn.keys.isdisjoint(a.tried)]
    newest = {
        _key(drawn, place): replace(
            _untried(drawn, place), verdict="not_run", reason="an undo before it gave up"
        )
        for place in not_run
    }
    for attempt in mine:
        newest.update((k, t) for k, t in attempt.tried.items() if k in drawn.keys)
    order = sorted(newest.values(), key=lambda t: (t.started_at is None, t.started_at or _NEVER))
    return Recovery(
        workflow_id=drawn.plan.workflow_id,
        run_id=drawn.plan.run_id,
        recovery_ids=tuple(a.workflow_id for a in mine),
        undos=tuple(
            UndoResult(
                key=t.key,
                action=t.action,
                undo=t.undo or "",
                workflow_id=t.workflow_id,
                verdict=t.verdict,
                reason=t.reason,
                started_at=t.started_at,
                ended_at=t.ended_at,
            )
            for t in order
        ),
        left=left,
        notes=(*drawn.plan.notes, *progress.notes),
    )
