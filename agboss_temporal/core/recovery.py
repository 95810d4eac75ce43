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
from agboss_temporal.core.entry import Step
from agboss_temporal.core.errors import RecordError, RecordVersionError
from agboss_temporal.core.plan import Planned

RECOVERY_TYPE: Final = "agboss.recovery"
"""Registered name of the workflow that undoes the entries of other runs."""

RECOVERY_PREFIX: Final = "agboss-recovery"
"""With what the ids of such workflows begin."""

MAX_ID: Final = 900
"""How long such an id may be in bytes; the server's limit is 1,000 characters, if nobody lowered
it."""

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

    @property
    def step(self) -> Step:
        """What it is to the ledger of the run that handed the entry over."""
        return _STEPS.get(self.verdict, Step.FAIL)


_STEPS: Final = {
    "undone": Step.SUCCEED,
    "skipped": Step.SKIP,
    "denied": Step.DENY,
    "not_run": Step.LEAVE,
}
"""Any other verdict is a failure."""

NOT_ANSWERED: Final = Outcome("failed", "it was not answered for")
"""What an entry gets of which a result does not speak."""


def no_answer(error_type: str) -> Outcome:
    """Return what every entry gets whose workflow gave no result, but ended with an error."""
    return Outcome("failed", f"handed to a workflow that ended with {error_type}")


_text, _text_or_none = reading.of(str), reading.of(str, type(None))


def recovery_id(workflow_id: str, tail: str) -> str:
    """Name a workflow that undoes entries of another one.

    Args:
        workflow_id: The other one's id; left out where there is no room for it.
        tail: What tells it from all others.
    """
    whole = f"{RECOVERY_PREFIX}/{workflow_id}/{tail}"
    return whole if len(whole.encode()) <= MAX_ID else f"{RECOVERY_PREFIX}/{tail}"


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
            workflow_id=_text(about["id"]),
            run_id=_text(about["run"]),
            entries=[from_row(row) for row in body["entries"]],
            order=list(reading.each(reading.of(int))(body["order"])),
            unwind=reading.of(int)(body["unwind"]),
            trigger=_text(body["trigger"]),
            cause=_text_or_none(body.get("cause")),
            message=_text_or_none(body.get("message")),
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
            key: Outcome(
                _text_or_none(verdict),
                _text_or_none(reason),
                reading.time(started),
                reading.time(ended),
            )
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
    if not isinstance(about, dict) or "v" not in about:
        raise RecordError(f"this is no {what}")
    if about["v"] != 1:
        raise RecordVersionError(f"a {what} of version {about['v']!r:.20}; this code reads 1")
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
