"""What became of a run's effects: the records of a report, read, written and shortened."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from agboss_temporal.core import reading
from agboss_temporal.core.entry import UNFINISHED
from agboss_temporal.core.errors import RecordError

Trigger: TypeAlias = Literal["node-failure", "run-cancel", "cap-breach", "operator-request"]
Verdict: TypeAlias = Literal["undone", "failed", "skipped", "denied", "not_run", "irreversible"]
Status: TypeAlias = Literal[
    "none", "pending", "running", "completed", "partial", "failed", "manual"
]

TRIGGERS: Final[tuple[str, ...]] = get_args(Trigger)
VERDICTS: Final[frozenset[str]] = frozenset(get_args(Verdict))

FAILURE_TYPE: Final = "CompensationFailedError"
"""Wire type of the error whose details carry a report."""

MAX_CAUSE: Final = 500
"""How much of an error's type a shortened report keeps, in characters."""

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
        trigger: A trigger, or what else asked for it: ``join``, ``handler``, or ``explicit`` for
            `compensate` and for a `unit` that an exception left.
        cause: Type of the error that started it.
        status: Its own status.
        started_at: When it began, in workflow time.
        ended_at: When its last verdict was known, in workflow time.
        unit: Name or path of the unit that it unwound; ``None`` for the whole run.
    """

    ordinal: int
    trigger: str
    cause: str | None
    status: str
    started_at: datetime | None = None
    ended_at: datetime | None = None
    unit: str | None = None


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
        status: Fold over the verdicts of every planned entry (see `plan.fold_status`).
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
        omitted_in_doubt: How many calls in doubt were left out for the same reason.
        omitted_also_failed: How many further errors were left out for the same reason.
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
    omitted_in_doubt: int = 0
    omitted_also_failed: int = 0
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
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != 1:
            raise RecordError(f"compensation report of version {version!r}; this code reads 1")
        found: CompensationReport = reading.record(cls, _READERS)(data)
        return found

    @classmethod
    def from_error(cls, error: BaseException) -> CompensationReport | None:
        """Read the report that a failed run's error carries.

        Args:
            error: What the client raised for the run, such as ``WorkflowFailureError``.

        Returns:
            The report, or ``None`` when no `CompensationFailedError` is in the chain of causes.
        """
        seen: list[BaseException] = []
        here: BaseException | None = error
        while here is not None:
            seen.append(here)
            if getattr(here, "type", None) == FAILURE_TYPE:
                details = getattr(here, "details", None)
                if isinstance(details, Sequence) and details and isinstance(details[0], Mapping):
                    return cls.from_dict(details[0])
            here = _cause_of(here, seen)
        return None

    def shortened(self, limit: int = MAX_DETAIL_BYTES) -> CompensationReport:
        """Return the report in at most ``limit`` bytes of JSON, what is left behind kept first.

        What is cut is counted: entries in ``omitted``, unwinds in ``older_unwinds``, the rest in
        ``omitted_in_doubt`` and ``omitted_also_failed``.
        """
        if _size(self) <= limit:
            return self
        ranked = _ranked(self)
        low, high = 0, len(ranked)
        while low < high:
            middle = (low + high + 1) // 2
            if _size(_keep(self, ranked[:middle])) <= limit:
                low = middle
            else:
                high = middle - 1
        return _keep(self, ranked[:low])


def _cause_of(error: BaseException, seen: Sequence[BaseException]) -> BaseException | None:
    """Follow an error to its cause: as Temporal names it, else as Python does."""
    for cause in (getattr(error, "cause", None), error.__cause__):
        if isinstance(cause, BaseException) and not any(cause is each for each in seen):
            return cause
    return None


_Item: TypeAlias = "EntryReport | InDoubtReport | UnwindReport | str"


def _ranked(report: CompensationReport) -> list[_Item]:
    """List all that a report can do without, what says most about effects left behind first."""
    entries = sorted(report.entries, key=_rank)
    left = [e for e in entries if _rank(e) == 0]
    return [
        *left,
        *report.in_doubt,
        *reversed(report.unwinds),
        *report.also_failed,
        *entries[len(left) :],
    ]


def _rank(entry: EntryReport) -> int:
    if entry.verdict in UNFINISHED:
        return 0
    return 1 if entry.verdict == "irreversible" else 2


def _keep(report: CompensationReport, items: Sequence[_Item]) -> CompensationReport:
    """Reduce a report to some of its items; `_ranked` keeps the order of each kind."""
    entries = tuple(i for i in items if isinstance(i, EntryReport))
    doubts = tuple(i for i in items if isinstance(i, InDoubtReport))
    unwinds = tuple(i for i in items if isinstance(i, UnwindReport))
    failed = tuple(i for i in items if isinstance(i, str))
    return dataclasses.replace(
        report,
        cause=None if report.cause is None else report.cause[:MAX_CAUSE],
        entries=entries,
        in_doubt=doubts,
        unwinds=unwinds[::-1],
        also_failed=failed,
        older_unwinds=report.older_unwinds + len(report.unwinds) - len(unwinds),
        omitted=report.omitted + len(report.entries) - len(entries),
        omitted_in_doubt=report.omitted_in_doubt + len(report.in_doubt) - len(doubts),
        omitted_also_failed=report.omitted_also_failed + len(report.also_failed) - len(failed),
    )


def _size(report: CompensationReport) -> int:
    return len(json.dumps(report.to_dict(), separators=(",", ":")))


def _iso(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)


_SCALARS: Final[Mapping[str, reading.Reader]] = {
    "str": reading.of(str),
    "str | None": reading.of(str, type(None)),
    "int": reading.of(int),
    "datetime | None": reading.time,
}

_READERS: Final[Mapping[str, reading.Reader]] = {
    **_SCALARS,
    "dict[str, int]": reading.counts,
    "tuple[str, ...]": reading.each(reading.of(str)),
    "tuple[EntryReport, ...]": reading.each(reading.record(EntryReport, _SCALARS)),
    "tuple[InDoubtReport, ...]": reading.each(reading.record(InDoubtReport, _SCALARS)),
    "tuple[UnwindReport, ...]": reading.each(reading.record(UnwindReport, _SCALARS)),
}
"""How a field is read, by its declared type."""
