"""What of closed runs is to be undone, in which order, and what only a person can judge."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from agboss_temporal.core.attempts import Attempts
from agboss_temporal.core.entry import UNFINISHED, State
from agboss_temporal.core.run_ledger import MAY_HAVE_EFFECT, RunEntry, RunLedger

_BEFORE_ALL: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that is to be undone.

    Attributes:
        entry: The entry.
        run: The ledger that it is in.
        started_at: When an undo of it was last started; its outcome is unknown.
    """

    entry: RunEntry
    run: RunLedger
    started_at: datetime | None = None


@dataclass(slots=True)
class Choice:
    """What was found in one run, or in several.

    Attributes:
        candidates: What is to be undone.
        at_work: Ids of the workflows that are undoing some of it.
        keys: Keys of all that was open when the run was closed, whatever became of it since.
        notes: What only a person can judge.
    """

    candidates: list[Candidate] = field(default_factory=list)
    at_work: dict[str, None] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.keys or self.notes)

    def add(self, other: Choice) -> None:
        """Add what was found in another run."""
        self.candidates += other.candidates
        self.at_work.update(other.at_work)
        self.keys |= other.keys
        self.notes += other.notes


def choose(run: RunLedger, attempts: Attempts, elsewhere: frozenset[str] = frozenset()) -> Choice:
    """Choose what of a closed run is to be undone.

    What is open or was being undone is; what is in doubt is if its contract says so, as in the
    run's own unwind. What is sealed, or has its verdict, is not.

    Args:
        run: The ledger of the run.
        attempts: What others have done for it.
        elsewhere: Keys of entries that live on in a run that was made from it by a reset.
    """
    found = Choice()
    for entry in run:
        if entry.key in elsewhere:
            continue
        if entry.state in MAY_HAVE_EFFECT and _is_undone_by_an_unwind(entry):
            _choose(found, run, entry, attempts)
        else:
            found.notes += _note(run, entry)
    found.notes += _other_notes(run)
    return found


def _is_undone_by_an_unwind(entry: RunEntry) -> bool:
    if entry.contract.irreversible or entry.contract.undo is None:
        return False
    return entry.state is not State.IN_DOUBT or entry.contract.on_unknown == "undo"


def _choose(found: Choice, run: RunLedger, entry: RunEntry, attempts: Attempts) -> None:
    key = entry.key
    found.keys.add(key)
    if attempts.is_undone(key):
        return
    at_work, given_up = attempts.at_work(key), attempts.given_up(key)
    if at_work is not None:
        found.at_work[at_work.workflow_id] = None
    elif given_up is not None:
        found.notes.append(_left(run, entry, given_up.verdict or State.NOT_RUN, given_up.reason))
    else:
        # Of what another workflow was given, that one tells better whether it was started.
        own = [undo for undo in entry.undos if not attempts.tells_of(key, undo.by)]
        starts = [undo.scheduled_at for undo in own if undo.outcome is None]
        starts.append(attempts.last_start(key))
        known = [start for start in starts if start is not None]
        found.candidates.append(Candidate(entry, run, max(known, default=None)))


def _note(run: RunLedger, entry: RunEntry) -> list[str]:
    who = f"{entry.contract.action} {entry.key} of {run.workflow_id}"
    if entry.state is State.IN_DOUBT:
        return [f"{who} may have taken effect ({entry.doubt}): look, and undo it by hand if it has"]
    if entry.state in MAY_HAVE_EFFECT:
        return [f"{who} has no undo: what it did stays"]
    if entry.state in UNFINISHED:
        reason = entry.undos[-1].reason if entry.undos else None
        return [_left(run, entry, entry.state, reason)]
    return []


def _left(run: RunLedger, entry: RunEntry, verdict: str, reason: str | None) -> str:
    why = f", {reason}" if reason else ""
    return (
        f"{entry.contract.action} {entry.key} of {run.workflow_id} was given up by the run's own "
        f"unwind ({verdict}{why}): undo it by hand"
    )


def _other_notes(run: RunLedger) -> Iterator[str]:
    for committer in run.committers_in_doubt:
        yield (
            f"committer {committer.name} {committer.key} of {run.workflow_id} may have taken "
            f"effect ({committer.doubt}): look before what waited for it is undone"
        )
    for call in run.unrecorded:
        yield (
            f"{call.action} of {run.workflow_id} (event {call.event_id}) has no record: nothing "
            "undoes it; undo it by hand, or give contracts"
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """A candidate among all others, by the order in which they settled.

    Attributes:
        candidate: The candidate.
        after: How many of those before it had settled when it was started; ``None`` for all.
    """

    candidate: Candidate
    after: int | None


def settled_order(candidates: Iterable[Candidate]) -> list[Placed]:
    """Put candidates into the order in which they settled.

    Within a run that is its own; between runs, the server's time tells. Where that says that one
    had settled when another was started, the other may build on it.
    """
    runs: dict[int, list[Candidate]] = {}
    for each in candidates:
        runs.setdefault(id(each.run), []).append(each)
    timed = []
    for place, members in enumerate(runs.values()):
        newest = _BEFORE_ALL
        for each in sorted(members, key=lambda c: c.entry.sequence):
            newest = max(newest, _settled_at(each))
            timed.append((newest, place, each))
    timed.sort(key=lambda t: (t[0], t[1], t[2].entry.sequence))
    times = [when for when, _, _ in timed]
    found = []
    seen: dict[int, list[tuple[int, int]]] = {}
    for number, (_, place, each) in enumerate(timed):
        mine = seen.setdefault(place, [])
        after = _after(each, times[:number], mine)
        found.append(Placed(each, None if after == number else after))
        mine.append((each.entry.sequence, number))
    return found


def _after(each: Candidate, times: Sequence[datetime], mine: Sequence[tuple[int, int]]) -> int:
    """Count the first ones of which one had settled before an entry was started."""
    begun = each.entry.scheduled_at
    if begun is None:
        return len(times)
    before = bisect_right(mine, (each.entry.after, len(times)))
    own = mine[before - 1][1] + 1 if before else 0
    return max(own, bisect_right(times, begun) if len(mine) < len(times) else 0)


def _settled_at(each: Candidate) -> datetime:
    if each.entry.settled_at is not None:
        return each.entry.settled_at
    if each.entry.event_id is None or each.run.end is None or each.run.end.at is None:
        return _BEFORE_ALL  # An earlier run carried it over.
    return each.run.end.at


def plan_order(placed: Sequence[Placed]) -> list[int]:
    """Return the places of candidates in the order of a plan: newest first.

    Those whose outcome is unknown come first, as in the run's own unwind.
    """

    def newest_first(place: int) -> tuple[bool, datetime, int]:
        entry = placed[place].candidate.entry
        unknown = entry.doubt is not None
        begun = (entry.scheduled_at or _BEFORE_ALL) if unknown else _BEFORE_ALL
        return unknown, begun, place

    return sorted(range(len(placed)), key=newest_first, reverse=True)
