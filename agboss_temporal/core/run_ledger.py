"""The ledger of a run as its history shows it: the result of the fold.

Payloads are opaque here and stand as the history has them. `to_dict` leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.plain import plain
from agboss_temporal.core.report import TRIGGERS, CompensationReport
from agboss_temporal.core.scope import UnitPath

How: TypeAlias = Literal[
    "completed", "failed", "cancelled", "terminated", "timed_out", "continued_as_new"
]
"""How a run, or a child, was closed. A child may also have ended as ``not_started``."""

MAY_HAVE_EFFECT: Final = frozenset({State.OPEN, State.IN_DOUBT, State.UNDOING})
"""States of an entry whose effect nothing is known to have removed."""


@dataclass(frozen=True, slots=True)
class UndoCall:
    """One call of an undo, by an unwind or by the workflow's code.

    Attributes:
        event_id: The event that scheduled it, or started the child that was to run it.
        activity: Registered name of the undo.
        activity_id: Temporal's id of the call; empty where a child ran it.
        task_queue: The queue on which it was scheduled.
        explicit: Whether the workflow's code called it.
        unwind: Ordinal of the unwind that it belongs to.
        scheduled_at: When it was scheduled, in workflow time.
        settled_event_id: The event that settled it; ``None`` while it runs.
        settled_at: When it settled, in server time.
        attempts: The attempt that settled it, which history shows only then; 0 before, and where a
            child ran it.
        outcome: ``completed``, ``failed``, or ``None`` while nobody knows.
        reason: Why it failed: the type of the error, never its message.
        by: Id of the child workflow that ran it, if it was handed to one.
    """

    event_id: int
    activity: str
    activity_id: str = ""
    task_queue: str | None = None
    explicit: bool = False
    unwind: int | None = None
    scheduled_at: datetime | None = None
    settled_event_id: int | None = None
    settled_at: datetime | None = None
    attempts: int = 0
    outcome: str | None = None
    reason: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One execution of an action.

    Attributes:
        key: Its identity.
        contract: What was declared for it when it was started, as far as its record tells.
        ordinal: Its place among the calls of the run; negative for what an earlier run carried.
        unit: The unit in which it was started.
        state: Where it stands after the last event.
        sequence: Its place in the order in which entries settled, from 1; 0 if it has not.
        after: How many entries had settled when it was started.
        doubt: Why its outcome is unknown.
        result: The recorded result payload.
        args: The recorded argument payloads.
        carried: Whether an earlier run handed it over. Codecs are then applied to its payloads
            already: they were inside an encoded memo.
        recorded: Whether its call has a record of ours; else ``contracts`` judged it.
        call_id: The activity's id, or the child's workflow id.
        event_id: The event that scheduled it; ``None`` if that is in an earlier run.
        settled_event_id: The event that settled it.
        scheduled_at: When it was scheduled, in workflow time.
        settled_at: When it settled, in server time.
        task_queue: The queue on which it was scheduled; for a child the run's own.
        priority: Its priority key, fairness key and fairness weight, if it had one of its own.
        undos: The calls of its undo, oldest first.
        handed_to: Id of the child workflow that was given the entry to undo, because the run's own
            history had no room. What it has done by now, only that child's history tells.
    """

    key: str
    contract: Contract
    ordinal: int
    unit: UnitPath = ()
    state: State = State.RUNNING
    sequence: int = 0
    after: int = 0
    doubt: str | None = None
    result: Any = None
    args: tuple[Any, ...] = ()
    carried: bool = False
    recorded: bool = True
    call_id: str = ""
    event_id: int | None = None
    settled_event_id: int | None = None
    scheduled_at: datetime | None = None
    settled_at: datetime | None = None
    task_queue: str | None = None
    priority: tuple[int, str, float] | None = None
    undos: tuple[UndoCall, ...] = ()
    handed_to: str | None = None

    @property
    def outcome(self) -> str:
        """``completed``, or ``unknown`` when nobody knows whether it took effect."""
        return "completed" if self.doubt is None else "unknown"


@dataclass(frozen=True, slots=True)
class ChildRun:
    """A child workflow that the run started.

    Attributes:
        event_id: The event that initiated it.
        workflow_type: Its type.
        workflow_id: Its id.
        namespace: Its namespace.
        run_id: Its first run; ``None`` if it has not started.
        compensated: Whether its record or its close policy say that it unwinds itself. What it
            really did, only its own history tells.
        parent_close_policy: ``terminate``, ``abandon`` or ``request_cancel``.
        key: Key of its entry, if it is an action.
        end: How it ended; ``not_started``, or ``None`` while nobody knows.
        end_event_id: The event that says so.
        takes_over: Whether it executes a part of this run's unwind.
    """

    event_id: int
    workflow_type: str
    workflow_id: str
    namespace: str = ""
    run_id: str | None = None
    compensated: bool = False
    parent_close_policy: str = "terminate"
    key: str | None = None
    end: str | None = None
    end_event_id: int | None = None
    takes_over: bool = False


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run was closed.

    Attributes:
        how: In one word.
        event_id: The event that closed it.
        at: When.
        failure_type: Type of the error that it failed with.
        next_run_id: The run that follows it: continued as new, retried, or by its schedule.
    """

    how: How
    event_id: int
    at: datetime | None = None
    failure_type: str | None = None
    next_run_id: str | None = None


@dataclass(frozen=True, slots=True)
class UnrecordedCall:
    """An action that left no record: no plugin there, or a local activity. Nothing undoes it.

    Attributes:
        event_id: The event that scheduled it, or the marker of a local one.
        action: Registered name.
        kind: ``activity``, ``workflow`` or ``local-activity``.
    """

    event_id: int
    action: str
    kind: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that the history holds and that could not be read.

    Attributes:
        event_id: The event that holds it.
        what: ``header``, ``memo``, ``failure``, ``undo``, ``recovery``, ``hand-over``; the last is
            the plan that a recovery workflow is given, or what it answers.
        reason: Why.
    """

    event_id: int
    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunLedger:
    """What a run did, what it undid, and what is left, from its history alone.

    Attributes:
        workflow_id: Id of the workflow.
        workflow_type: Its type.
        run_id: The run.
        task_queue: Its own queue, on which undos of children run.
        entries: Executions of actions, in the order in which they were started.
        committers_in_doubt: Committers that may have taken effect, oldest first.
        children: The child workflows that it started.
        unrecorded: Actions without a record.
        unreadable: What could not be read. If it is not empty, the ledger may lack entries.
        end: How it was closed; ``None`` while it is open.
        last_event_id: The last event of the history.
        task_event_ids: The ends of its workflow tasks: the events to which a run can be reset.
        report: The same report as in the workflow.
        origin: Id of the workflow whose entries these are, if this is a recovery workflow; they
            are `carried`.
    """

    workflow_id: str
    workflow_type: str
    run_id: str
    task_queue: str
    entries: tuple[RunEntry, ...] = ()
    committers_in_doubt: tuple[CommitterInDoubt, ...] = ()
    children: tuple[ChildRun, ...] = ()
    unrecorded: tuple[UnrecordedCall, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    end: RunEnd | None = None
    last_event_id: int = 0
    task_event_ids: tuple[int, ...] = ()
    report: CompensationReport = field(default_factory=CompensationReport)
    origin: str | None = None

    def __iter__(self) -> Iterator[RunEntry]:
        return iter(self.entries)

    @property
    def is_closed(self) -> bool:
        """Whether the run is closed."""
        return self.end is not None

    def open_entries(self) -> list[RunEntry]:
        """List what took effect and is neither sealed nor undone, in the order of start."""
        return [e for e in self.entries if e.state is State.OPEN]

    def in_doubt(self) -> list[RunEntry]:
        """List what may have taken effect, in the order of start."""
        return [e for e in self.entries if e.state is State.IN_DOUBT]

    def interrupted(self) -> list[RunEntry]:
        """List what was being undone at the last event: the undo may have taken effect."""
        return [e for e in self.entries if e.state is State.UNDOING]

    def built_on(self, event_id: int) -> list[RunEntry]:
        """List the entries that a run reset to an event would build on although they are undone.

        Args:
            event_id: The end of a workflow task; the new run keeps the events before it.
        """
        return [e for e in self.entries if self._is_built_on(e, event_id)]

    @property
    def last_safe_reset(self) -> int | None:
        """The last event to which the run can be reset without building on what was undone."""
        touched = [e for e in self.entries if e.undos]
        for event_id in reversed(self.task_event_ids):
            if not any(self._is_built_on(e, event_id) for e in touched):
                return event_id
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain JSON values, without any payload."""
        found: dict[str, Any] = plain(self)
        found["last_safe_reset"] = self.last_safe_reset
        return found

    def _is_built_on(self, entry: RunEntry, event_id: int) -> bool:
        """Tell whether the new run would see an action completed and not see it undone.

        What the run's own unwind has undone is never built on again: a run that is reset into the
        middle of it has a new end, and the actions before it are gone.
        """
        settled = entry.settled_event_id if entry.event_id is not None else 0
        if settled is None or settled >= event_id:
            return False
        closing = {u.ordinal for u in self.report.unwinds if u.trigger in TRIGGERS}
        return any(
            undo.unwind in closing
            or undo.settled_event_id is None
            or undo.settled_event_id >= event_id
            for undo in entry.undos
        )
