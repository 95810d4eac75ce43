"""Open entries of a run that another workflow is to undo: the plan, and what became of it.

Both are bytes: one line of JSON that says what they are, then compressed JSON. Whoever starts the
workflow, the records are the same. They only grow: a field that is absent has its default.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agboss_temporal.core import reading
from agboss_temporal.core.carry import Carried, from_row, row_of
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.plan import Planned

RECOVERY_TYPE: Final = "agboss.recovery"
"""Registered name of the workflow that undoes the entries of other runs."""

RECOVERY_PREFIX: Final = "agboss-recovery"
"""With what the ids of such workflows begin."""

MAX_REASON: Final = 500
"""How much of a reason a result keeps, in characters."""


@dataclass(frozen=True)
class RecoveryPlan:
    """Open entries of one run, and how they are to be undone.

    Attributes:
        workflow_id: Id of the workflow whose history holds the entries.
        run_id: Its run.
        entries: The entries, in the order in which they settled.
        order: The order of the plan, as places in ``entries``.
        unwind: Ordinal of the unwind in that run.
        trigger: What started it.
        cause: Type of the error that started it.
        message: That error's own message, for undos that are given a context.
        policy: Order, parallelism, disposition and options, in JSON form.
        until: When the unwind's time is over.
        fails: Whether the workflow fails if something is left behind; else it only says so.
    """

    workflow_id: str
    run_id: str
    entries: Sequence[Carried]
    order: Sequence[int]
    unwind: int
    trigger: str
    cause: str | None = None
    message: str | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    until: datetime | None = None
    fails: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of one entry."""

    verdict: str
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


def encode_plan(plan: RecoveryPlan) -> bytes:
    """Write a plan."""
    about = {"v": 1, "id": plan.workflow_id, "run": plan.run_id, "n": len(plan.entries)}
    body = {
        "unwind": plan.unwind,
        "trigger": plan.trigger,
        "cause": plan.cause,
        "message": plan.message,
        "policy": dict(plan.policy),
        "until": _iso(plan.until),
        "fails": True if plan.fails else None,
        "order": list(plan.order),
        "entries": [row_of(entry) for entry in plan.entries],
    }
    return _framed(about, body)


def decode_plan(data: bytes) -> RecoveryPlan:
    """Read a plan.

    Raises:
        RecordError: It is not a plan, or of a version that this code cannot read.
    """
    about, body = _unframed(data, "recovery plan")
    try:
        plan = RecoveryPlan(
            workflow_id=about["id"],
            run_id=about["run"],
            entries=[from_row(row) for row in body["entries"]],
            order=body["order"],
            unwind=body["unwind"],
            trigger=body["trigger"],
            cause=body.get("cause"),
            message=body.get("message"),
            policy=body.get("policy", {}),
            until=reading.time(body.get("until")),
            fails=bool(body.get("fails")),
        )
    except (KeyError, TypeError, ValueError) as err:
        raise RecordError("the recovery plan is damaged") from err
    if sorted(plan.order) != list(range(len(plan.entries))):
        raise RecordError("the order of the recovery plan does not fit its entries")
    return plan


def encode_result(plan: Sequence[Planned]) -> bytes:
    """Write what became of the entries of a plan."""
    rows = {
        p.entry.key: [
            p.verdict,
            p.reason and p.reason[:MAX_REASON],
            _iso(p.started_at),
            _iso(p.ended_at),
        ]
        for p in plan
    }
    return _framed({"v": 1, "n": len(rows)}, rows)


def decode_result(data: bytes) -> dict[str, Outcome]:
    """Read what became of entries, by their keys.

    Raises:
        RecordError: It is not a result, or of a version that this code cannot read.
    """
    _, body = _unframed(data, "recovery result")
    try:
        return {
            key: Outcome(verdict, reason, reading.time(started), reading.time(ended))
            for key, (verdict, reason, started, ended, *_) in body.items()
        }
    except (TypeError, ValueError) as err:
        raise RecordError("the recovery result is damaged") from err


def _framed(about: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    return _json(about) + b"\n" + zlib.compress(_json(body))


def _unframed(data: bytes, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    head, _, rest = data.partition(b"\n")
    try:
        about = json.loads(head)
    except (ValueError, RecursionError) as err:
        raise RecordError(f"this is no {what}") from err
    if not isinstance(about, dict) or about.get("v") != 1:
        raise RecordError(f"this is no {what} of a version that this code can read")
    try:
        body = json.loads(zlib.decompress(rest))
    except (ValueError, RecursionError, zlib.error) as err:
        raise RecordError(f"the {what} is damaged") from err
    if not isinstance(body, dict):
        raise RecordError(f"the {what} is damaged")
    return about, body


def _json(value: Mapping[str, Any]) -> bytes:
    fields = {name: each for name, each in value.items() if each is not None}
    return json.dumps(fields, separators=(",", ":")).encode()


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
