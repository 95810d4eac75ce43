"""What became of a run's effects: verdicts, the status fold, the report."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.ledger import CommitterInDoubt, Entry, State

Trigger: TypeAlias = Literal["node-failure", "run-cancel", "cap-breach", "operator-request"]
Verdict: TypeAlias = Literal["undone", "failed", "skipped", "denied", "not_run", "irreversible"]
Status: TypeAlias = Literal[
    "none", "pending", "running", "completed", "partial", "failed", "manual"
]

TRIGGERS: Final[tuple[str, ...]] = get_args(Trigger)
VERDICTS: Final[frozenset[str]] = frozenset(get_args(Verdict))

FAILURE_TYPE: Final = "CompensationFailedError"
"""Wire type of the error whose details carry a report."""

MAX_UNWINDS: Final = 20
"""How many unwinds a report keeps in full."""

MAX_DETAIL_BYTES: Final = 32 * 1024
"""How large the report in an error's details may be, in bytes of JSON."""


@dataclass(frozen=True, slots=True)
class EntryReport:
    """One entry that an unwind answered for.

    Attributes:
        key: Identity of the action's execution.
        action: Registered name of the action.
        undo: Registered name of its undo; ``None`` for an irreversible action.
        unwind: Ordinal of the unwind that planned it, from 1.
        outcome: ``completed``, or ``unknown`` for an entry that was in doubt.
        verdict: What became of it; ``None`` while the unwind goes on.
        reason: For a verdict other than ``undone``, the error type or the bound that ended it.
            Never an error's message.
        started_at: When its undo was started, in workflow time.
        ended_at: When its verdict was known, in workflow time.
        decided_by: The operator who decided it, if one did.
    """

    key: str
    action: str
    undo: str | None
    unwind: int
    outcome: str = "completed"
    verdict: str | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class UnwindReport:
    """One unwind of the run, or of a part of it.

    Attributes:
        ordinal: Its number in the run, from 1.
        trigger: A trigger, or ``explicit`` for `compensate`.
        cause: Type of the error that started it.
        status: Its own status.
        started_at: When it began, in workflow time.
        ended_at: When its last verdict was known, in workflow time.
    """

    ordinal: int
    trigger: str
    cause: str | None
    status: str
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InDoubtReport:
    """A call that may have taken effect, and nobody knows.

    Attributes:
        key: Identity of the call.
        name: Registered name of the activity or child workflow.
        kind: ``timed_out``, ``cancelled``, ``raised``, ``lost_result``, ``abandoned``.
        role: ``action`` or ``committer``.
    """

    key: str
    name: str
    kind: str
    role: str = "action"


@dataclass(frozen=True, slots=True)
class CompensationReport:
    """What compensation has done in a run.

    The same report comes from ``report()`` inside the workflow, from the query
    ``agboss.compensation`` and from the details of a `CompensationFailedError`. It holds names,
    keys, verdicts and times, never a payload and never an error's message.

    Attributes:
        status: Fold over every planned entry (see `fold_status`).
        trigger: What started the newest unwind.
        cause: Type of the error that started it.
        plan_version: Version of the plan; an operator's change raises it.
        entries: The planned entries, in the order in which they were planned.
        in_doubt: Calls whose outcome nobody knows and that no unwind has answered for.
        unwinds: The newest unwinds, oldest first.
        older_unwinds: How many unwinds are no longer listed.
        also_failed: Types of further errors that arrived while the run was ending.
        counts: Number of entries by verdict, of every unwind.
        omitted: How many entries were left out to keep the report small.
        version: Version of the format.
    """

    status: str = "none"
    trigger: str | None = None
    cause: str | None = None
    plan_version: int = 1
    entries: tuple[EntryReport, ...] = ()
    in_doubt: tuple[InDoubtReport, ...] = ()
    unwinds: tuple[UnwindReport, ...] = ()
    older_unwinds: int = 0
    also_failed: tuple[str, ...] = ()
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    omitted: int = 0
    version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values, times in ISO 8601."""
        found: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self), default=_iso))
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompensationReport:
        """Read a report from plain JSON values; fields of a later version are passed over.

        Raises:
            RecordError: It is not a report, or of a version that this code cannot read.
        """
        if data.get("version") != 1:
            raise RecordError(
                f"compensation report of version {data.get('version')!r}; this code reads 1"
            )
        lists = {
            "entries": _read_all(EntryReport, data.get("entries", ())),
            "in_doubt": _read_all(InDoubtReport, data.get("in_doubt", ())),
            "unwinds": _read_all(UnwindReport, data.get("unwinds", ())),
            "also_failed": tuple(data.get("also_failed", ())),
        }
        found: CompensationReport = _read(cls, {**data, **lists})
        return found

    @classmethod
    def from_error(cls, error: BaseException) -> CompensationReport | None:
        """Read the report that a failed run's error carries.

        Args:
            error: What the client raised for the run, such as ``WorkflowFailureError``.

        Returns:
            The report, or ``None`` when no `CompensationFailedError` is in the chain of causes.
        """
        seen: BaseException | None = error
        while seen is not None:
            if getattr(seen, "type", None) == FAILURE_TYPE:
                details = getattr(seen, "details", None) or ()
                if details and isinstance(details[0], Mapping):
                    return cls.from_dict(details[0])
            seen = getattr(seen, "cause", None) or seen.__cause__
        return None

    def shortened(self, limit: int = MAX_DETAIL_BYTES) -> CompensationReport:
        """Return the report in at most ``limit`` bytes of JSON, the failed entries kept first."""
        if _size(self) <= limit:
            return self
        ranked = sorted(self.entries, key=lambda e: e.verdict in (None, "undone"))
        low, high = 0, len(ranked)
        base = dataclasses.replace(
            self, in_doubt=self.in_doubt[:50], also_failed=self.also_failed[:20]
        )
        while low < high:
            middle = (low + high + 1) // 2
            if _size(_keep(base, ranked[:middle])) <= limit:
                low = middle
            else:
                high = middle - 1
        return _keep(base, ranked[:low])


@dataclass(slots=True)
class Planned:
    """An entry in the plan of an unwind, with its verdict as the unwind goes on."""

    entry: Entry
    verdict: str | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: str = "completed"

    def report(self, unwind: int) -> EntryReport:
        """Describe it."""
        contract = self.entry.contract
        return EntryReport(
            key=self.entry.key,
            action=contract.action,
            undo=contract.undo,
            unwind=unwind,
            outcome=self.outcome,
            verdict=self.verdict,
            reason=self.reason,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )


@dataclass(slots=True)
class Unwind:
    """One unwind: what started it, and its plan."""

    ordinal: int
    trigger: str
    cause: str | None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    plan: list[Planned] = dataclasses.field(default_factory=list)

    @property
    def status(self) -> str:
        """Its own status."""
        return fold_status((p.verdict for p in self.plan), active=self.ended_at is None)

    def report(self) -> UnwindReport:
        """Describe it, without its entries."""
        return UnwindReport(
            ordinal=self.ordinal,
            trigger=self.trigger,
            cause=self.cause,
            status=self.status,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )


def fold_status(verdicts: Iterable[str | None], *, active: bool = False) -> Status:
    """Fold the verdicts of a plan into one status.

    Args:
        verdicts: One for each planned entry, ``None`` where it is not known yet.
        active: Whether an unwind is still at work.

    Returns:
        ``none`` without a plan; ``pending`` while an unwind is active and has not planned yet;
        ``running`` while it goes on; then ``completed`` when everything is undone, ``partial``
        when something is, ``failed`` when nothing is. An irreversible entry is never undone, so
        it keeps the status from ``completed``.
    """
    found = list(verdicts)
    if not found:
        return "pending" if active else "none"
    if active or None in found:
        return "running"
    undone = found.count("undone")
    if undone == len(found):
        return "completed"
    return "partial" if undone else "failed"


def build_report(
    unwinds: Sequence[Unwind],
    entries: Iterable[Entry],
    committers: Iterable[CommitterInDoubt] = (),
    also_failed: Iterable[str] = (),
) -> CompensationReport:
    """Make the report of a run from its unwinds and its ledger."""
    planned = [p for unwind in unwinds for p in unwind.plan]
    counts: dict[str, int] = {}
    for each in planned:
        if each.verdict is not None:
            counts[each.verdict] = counts.get(each.verdict, 0) + 1
    kept = unwinds[-MAX_UNWINDS:]
    newest = unwinds[-1] if unwinds else None
    doubts = [
        InDoubtReport(e.key, e.contract.action, e.doubt or "")
        for e in entries
        if e.state is State.IN_DOUBT
    ]
    doubts += [InDoubtReport(c.key, c.name, c.doubt, "committer") for c in committers]
    return CompensationReport(
        status=fold_status(
            (p.verdict for p in planned), active=newest is not None and newest.ended_at is None
        ),
        trigger=newest.trigger if newest else None,
        cause=newest.cause if newest else None,
        entries=tuple(p.report(u.ordinal) for u in kept for p in u.plan),
        in_doubt=tuple(doubts),
        unwinds=tuple(u.report() for u in kept),
        older_unwinds=len(unwinds) - len(kept),
        also_failed=tuple(also_failed),
        counts=counts,
    )


def _keep(report: CompensationReport, entries: Sequence[EntryReport]) -> CompensationReport:
    return dataclasses.replace(
        report, entries=tuple(entries), omitted=len(report.entries) - len(entries)
    )


def _size(report: CompensationReport) -> int:
    return len(json.dumps(report.to_dict(), separators=(",", ":")))


def _iso(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _read_all(kind: type[Any], items: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    return tuple(_read(kind, item) for item in items)


def _read(kind: type[Any], data: Mapping[str, Any]) -> Any:
    names = {f.name for f in dataclasses.fields(kind)}
    known = {name: value for name, value in data.items() if name in names}
    for name in ("started_at", "ended_at"):
        if isinstance(known.get(name), str):
            known[name] = datetime.fromisoformat(known[name])
    try:
        return kind(**known)
    except TypeError as err:
        raise RecordError(f"not a {kind.__name__}: {err}") from err
