"""What must be true of every order when it is closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from agboss_temporal import CompensationReport
from tests.chaos.plan import Plan
from tests.chaos.record import UNCOMMITTED, UNDONE_WHEN_UNKNOWN, Entry, Record
from tests.chaos.shop import ATTEMPTS
from tests.chaos.world import Attempt, Effect

FAILURES = ("", "Boom", "Refused", "Broken", "Timeout", "ConnectionError", UNCOMMITTED)
"""What orders may fail with."""


@dataclass
class Closed:
    """A closed order, seen from all sides."""

    plan: Plan
    record: Record
    effects: list[Effect]
    attempts: list[Attempt]
    report: CompensationReport

    def effect_of(self, entry: Entry) -> Effect | None:
        """Find what an action did."""
        found = [e for e in self.effects if e.activity_id == entry.call.id]
        return found[0] if found else None

    def reverse_of(self, entry: Entry) -> Effect | None:
        """Find what reversed an action."""
        keys = {a.key for a in self.attempts if a.activity_id == entry.call.id}
        undos = {c.id for c in self.record.calls if c.undoes == entry.key}
        found = [e for e in self.effects if e.reverses in keys or e.activity_id in undos]
        return found[0] if found else None

    def left(self) -> set[str]:
        """Name the entries whose effects are still there."""
        entries = self.record.entries.values()
        return {e.key for e in entries if self.effect_of(e) and not self.reverse_of(e)}


def faults_of(order: Closed) -> list[str]:
    """Say everything that is wrong with an order."""
    parts = (ending, keys, cleanliness, completeness, undos, sequence, doubts)
    return [f"{part.__name__}: {fault}" for part in parts for fault in part(order)]


def ending(order: Closed) -> Iterator[str]:
    """It closes as its plan and its fate say."""
    record = order.record
    yield from (f"workflow task failed: {message}" for message in record.task_failures)
    if record.ending not in ("COMPLETED", "FAILED", "CANCELED"):
        yield f"ended {record.ending or 'not at all'}"
    if record.failure not in FAILURES:
        yield f"failed with {record.failure}"
    tolerated = order.plan.tolerated()
    gave_up = any(
        entry.call.name in ATTEMPTS
        and entry.call.outcome in ("raised", "timed_out")
        and entry.call.item not in tolerated
        for entry in record.entries.values()
    )
    uncommitted = record.failure == UNCOMMITTED and _uncommitted(order)
    must_fail = order.plan.fails or gave_up or uncommitted
    if not record.cancel_requested and (record.ending == "FAILED") != must_fail:
        yield f"ended {record.ending}, must fail: {must_fail}"
    if record.cancel_requested and record.ending == "FAILED" and not must_fail:
        yield "was cancelled, yet ended FAILED"
    if not record.cancel_requested and record.ending == "CANCELED":
        yield "ended CANCELED, yet nobody cancelled it"


def keys(order: Closed) -> Iterator[str]:
    """All attempts of a call present one key, and no two calls the same."""
    pairs = {(a.activity_id, a.key) for a in order.attempts}
    for activity_id, count in Counter(activity_id for activity_id, _ in pairs).items():
        if count > 1:
            yield f"activity {activity_id} presented {count} keys"
    explicit = {c.id for c in order.record.calls if "x" in c.header}
    for key, count in Counter(k for activity_id, k in pairs if activity_id not in explicit).items():
        if count > 1:
            yield f"key {key} was presented by {count} calls"
    actions = {a.key for a in order.attempts if a.kind == "do"}
    for attempt in order.attempts:
        known = attempt.reverses is None or attempt.reverses in actions
        if not known and _was_attempted(order, attempt):
            yield f"{attempt.name} reverses {attempt.reverses}, which no action presented"


def cleanliness(order: Closed) -> Iterator[str]:
    """Effect and reverse effect agree with what history says of each entry."""
    for entry in order.record.entries.values():
        effect, reverse = order.effect_of(entry), order.reverse_of(entry)
        what = f"{entry.call.name} {entry.key} is {entry.state} and"
        if entry.call.outcome == "completed" and effect is None:
            yield f"{what} completed without effect"
        if entry.state in ("running", "open"):
            yield f"{what} was left so"
        if entry.state == "no_effect" and effect is not None:
            yield f"{what} took effect"
        if (entry.state == "undone") != (reverse is not None):
            yield f"{what} has {'a' if reverse else 'no'} reverse effect"
        if effect and reverse and reverse.n < effect.n:
            yield f"{what} was reversed before it took effect"
    known = {c.id for c in order.record.calls}
    yield from (f"stray effect {e}" for e in order.effects if e.activity_id not in known)


def completeness(order: Closed) -> Iterator[str]:
    """What is left in the world is what was ordered, or nothing, or reported in doubt."""
    entries = order.record.entries.values()
    left = order.left()
    if order.record.ending == "COMPLETED" or order.record.failure == UNCOMMITTED:
        items = {order.record.entries[key].call.item for key in left}
        tolerated = order.plan.tolerated()
        if items - tolerated != order.plan.kept():
            yield f"left {sorted(items)}, planned {sorted(order.plan.kept())}"
    sealed = {e.key for e in entries if e.state == "sealed"}
    silent = left - sealed - {doubt.key for doubt in order.report.in_doubt}
    if silent:
        yield f"left behind and not reported: {sorted(silent)}"


def undos(order: Closed) -> Iterator[str]:
    """Each undo of an unwind is scheduled once, alone, and gets done."""
    unwind = order.record.unwind()
    for key, count in Counter(call.undoes for call in unwind).items():
        if count > 1:
            yield f"the undo of {key} was scheduled {count} times"
    for call in unwind:
        if call.outcome != "completed":
            yield f"undo {call.name} of {call.undoes} is {call.outcome or 'not settled'}"
    done = {c.undoes for c in order.record.calls if "x" in c.header and c.outcome == "completed"}
    yield from (f"{call.undoes} was undone before" for call in unwind if call.undoes in done)
    for before, after in pairwise(unwind):
        if not before.settled < after.scheduled:
            yield f"undo {after.name} was scheduled before {before.name} had settled"
    entries = order.record.entries.values()
    finals = [call for call in unwind if call.header["w"] == unwind[-1].header["w"]]
    if order.record.ending != "COMPLETED" and finals:
        late = [e.key for e in entries if e.call.settled > finals[0].scheduled]
        explicit = any(u.trigger == "explicit" for u in order.report.unwinds[-1:])
        if late and not explicit:
            yield f"actions {late} settled after the unwind had begun"


def sequence(order: Closed) -> Iterator[str]:
    """Unwinds go newest first, in history and in the world."""
    unwind = order.record.unwind()
    for ordinal in {call.header["w"] for call in unwind}:
        found = [call.undoes or "" for call in unwind if call.header["w"] == ordinal]
        planned = [order.record.entries[key].call for key in found]
        unknown = [c for c in planned if c.outcome != "completed"]
        completed = [c for c in planned if c.outcome == "completed"]
        unknown.sort(key=lambda c: -c.scheduled)
        completed.sort(key=lambda c: -c.settled)
        right = [c.header["a"] for c in unknown + completed]
        if found != right:
            yield f"unwind {ordinal} went {found}, newest first is {right}"
    ids = [call.id for call in unwind]
    world = [e.activity_id for e in order.effects if e.activity_id in ids]
    explicit = {c.undoes for c in order.record.calls if "x" in c.header}
    repeated = {c.id for c in unwind if c.undoes in explicit}
    if [i for i in world if i not in repeated] != [i for i in ids if i not in repeated]:
        yield f"the world saw undos {world}, history {ids}"


def doubts(order: Closed) -> Iterator[str]:
    """What is in doubt is undone if the contract says so, else reported: exactly those."""
    record = order.record
    expected = {(k, e.call.outcome) for k, e in record.entries.items() if e.state == "in_doubt"}
    reported = {(d.key, d.kind) for d in order.report.in_doubt if d.role == "action"}
    if expected != reported:
        yield f"in doubt {sorted(expected)}, reported {sorted(reported)}"
    for key, kind in expected:
        name = record.entries[key].call.name
        returned = record.ending == "COMPLETED" or record.failure == UNCOMMITTED
        if not returned and name in UNDONE_WHEN_UNKNOWN:
            yield f"{name} {key} is in doubt ({kind}) and was not undone"
    failed = [c for c in record.calls if "s" in c.header and c.outcome != "completed"]
    reported_failed = [d for d in order.report.in_doubt if d.role == "committer"]
    if len(failed) != len(reported_failed):
        yield f"committers in doubt {failed}, reported {reported_failed}"


def _was_attempted(order: Closed, undo: Attempt) -> bool:
    """Tell whether any attempt of the action that an undo belongs to was ever started."""
    call = next(c for c in order.record.calls if c.id == undo.activity_id)
    entry = order.record.entries[call.undoes or ""]
    return any(a.activity_id == entry.call.id for a in order.attempts)


def _uncommitted(order: Closed) -> bool:
    """Tell whether the unwind undid what nothing had committed, and only that."""
    undone = [order.record.entries[call.undoes or ""].call for call in order.record.unwind()]
    return bool(undone) and any(call.header.get("c") for call in undone)
