"""What a history says, without its form: the facts that the fold is fed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from agboss_temporal.core.contract import Contract, Kind
from agboss_temporal.core.wire import CallRecord

HAND_OVER: Final = "hand-over"
"""What is unreadable where a plan, or what became of it, cannot be read."""


@dataclass(frozen=True, slots=True)
class HandedEntry:
    """An entry that a child workflow is to undo.

    Attributes:
        key: Its key.
        undo: Registered name of its undo.
        given: The payloads that stand for it, without codec.
    """

    key: str
    undo: str | None
    given: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class HandOver:
    """What a child workflow was given to undo.

    Attributes:
        workflow_id: The workflow whose entries these are.
        unwind: Ordinal of the unwind that they belong to.
        entries: The entries, in the order of the plan.
    """

    workflow_id: str
    unwind: int
    entries: Sequence[HandedEntry]


@dataclass(slots=True)
class Call:
    """A call of an activity or a child workflow that was scheduled.

    Attributes:
        event_id: The event that scheduled it; the call goes by it from then on.
        kind: What was called.
        name: Its registered name.
        call_id: The activity's id, or the child's workflow id.
        task_queue: The queue that it was scheduled on.
        args: Its argument payloads as the history has them.
        plain_args: The same without codec; given only where there is no record to go by.
        record: What its header says.
        contract: What was declared for it, by its record.
        unreadable: Why its header cannot be read.
        priority: Its own priority.
        single_attempt: Whether it had one attempt only.
        namespace: The child's namespace.
        parent_close_policy: What becomes of the child when the run closes.
        handed: What it was given of an unwind, or why that cannot be read.
    """

    event_id: int
    kind: Kind
    name: str
    call_id: str = ""
    task_queue: str = ""
    args: Sequence[Any] = ()
    plain_args: Sequence[Any] = ()
    record: CallRecord | None = None
    contract: Contract | None = None
    unreadable: str | None = None
    priority: tuple[int, str, float] | None = None
    single_attempt: bool = False
    namespace: str = ""
    parent_close_policy: str = ""
    handed: HandOver | str = ""


@dataclass(frozen=True, slots=True)
class About:
    """An event that is about a call that was scheduled before.

    Attributes:
        event_id: The event.
        of: The event that scheduled the call.
        kind: What was called.
        at: When it happened, in server time.
    """

    event_id: int
    of: int
    kind: Kind
    at: datetime | None = None


@dataclass(slots=True)
class Origin:
    """Which run it is, and what it was started with.

    Attributes:
        workflow_id: Id of the workflow.
        workflow_type: Its type.
        run_id: The run id that was written when it started.
        task_queue: Its queue.
    """

    workflow_id: str = ""
    workflow_type: str = ""
    run_id: str = ""
    task_queue: str = ""
