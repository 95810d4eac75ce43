"""The events of an exported history: calls, what their headers say, and how they ended."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


class Impossible(Exception):
    """No workflow could have left this history."""

    def __init__(self, event: int, why: str) -> None:
        super().__init__(f"event {event}: {why}")


SCHEDULES = {
    "ACTIVITY_TASK_SCHEDULED": "activity",
    "START_CHILD_WORKFLOW_EXECUTION_INITIATED": "workflow",
}
STARTS = {"ACTIVITY_TASK_STARTED": "activity", "CHILD_WORKFLOW_EXECUTION_STARTED": "workflow"}
CANCELS = {"ACTIVITY_TASK_CANCEL_REQUESTED": "activity"}
SETTLES = {
    **{f"ACTIVITY_TASK_{how}": "activity" for how in ("COMPLETED", "FAILED", "TIMED_OUT")},
    "ACTIVITY_TASK_CANCELED": "activity",
    "START_CHILD_WORKFLOW_EXECUTION_FAILED": "workflow",
    **{
        f"CHILD_WORKFLOW_EXECUTION_{how}": "workflow"
        for how in ("COMPLETED", "FAILED", "CANCELED", "TIMED_OUT", "TERMINATED")
    },
}
CLOSES = {
    f"WORKFLOW_EXECUTION_{how}": said
    for how, said in {
        "COMPLETED": "completed",
        "FAILED": "failed",
        "CANCELED": "cancelled",
        "TERMINATED": "terminated",
        "TIMED_OUT": "timed_out",
        "CONTINUED_AS_NEW": "continued_as_new",
    }.items()
}
TASK_ENDS = [f"WORKFLOW_TASK_{how}" for how in ("COMPLETED", "FAILED", "TIMED_OUT")]
_ENDS = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELED": "cancelled",
    "TIMED_OUT": "timed_out",
    "TERMINATED": "terminated",
}


@dataclass(frozen=True)
class Event:
    id: int
    kind: str
    at: dict[str, Any]

    @classmethod
    def of(cls, found: dict[str, Any]) -> Event:
        [at] = [v for name, v in found.items() if name.endswith("Attributes")] or [{}]
        return cls(int(found["eventId"]), found["eventType"].removeprefix("EVENT_TYPE_"), at)

    @property
    def type_name(self) -> str:
        of = self.at.get("activityType") or self.at.get("workflowType") or {}
        return str(of.get("name", ""))

    @property
    def about(self) -> int:
        return int(self.at.get("scheduledEventId") or self.at.get("initiatedEventId") or 0)

    @property
    def scheduled(self) -> str | None:
        return SCHEDULES.get(self.kind)

    @property
    def settles(self) -> int | None:
        return self.about if self.kind in SETTLES else None

    @property
    def closes(self) -> bool:
        return self.kind in CLOSES

    @property
    def shows_that_commands_are_over(self) -> bool:
        """Whether it stands behind all that the workflow task before it has asked for."""
        return self.kind == "WORKFLOW_TASK_COMPLETED" or self.kind in SETTLES or self.closes

    @cached_property
    def report(self) -> tuple[dict[str, Any] | None, list[str]]:
        """The report in the error of a run, and the types of that error and its cause."""
        failure = self.at.get("failure", {}) if self.kind in CLOSES else {}
        info = failure.get("applicationFailureInfo", {})
        types = [info.get("type", "")]
        if types != ["CompensationFailedError"]:
            return None, types
        cause = failure.get("cause", {}).get("applicationFailureInfo", {})
        payloads = info.get("details", {}).get("payloads", [])
        found = json.loads(base64.b64decode(payloads[0]["data"])) if payloads else None
        return found, [*types, cause.get("type", "")]


@dataclass(frozen=True)
class Record:
    """What a header says, or nothing."""

    key: str = ""
    action: str | None = None
    committer_key: str | None = None
    undoes: str = ""
    explicit: bool = False
    undo: str | None = None
    committer: str | None = None
    irreversible: bool = False
    no_effect: tuple[str, ...] = ()
    unit: tuple[int, ...] = ()
    ended: tuple[tuple[int, ...], ...] = ()
    update: str | None = None
    unwind: int | None = None
    trigger: str | None = None
    cause: str | None = None
    label: str | None = None
    kept: tuple[str, ...] = ()
    hands_over: int | None = None
    origin: str | None = None
    abandons: bool = False

    @classmethod
    def of(cls, event: int, fields: Any) -> Record:
        if not isinstance(fields, dict) or fields.get("v", 1) != 1:
            raise Impossible(event, "no record of this version")
        for name in ("a", "s", "z", "x", "n", "u", "c", "h", "t", "e", "o", "l", "p"):
            if not isinstance(fields.get(name), str | None):
                raise Impossible(event, f"{name} is no text")
        for name in ("w", "d"):
            value = fields.get(name)
            if not isinstance(value, int | None) or isinstance(value, bool):
                raise Impossible(event, f"{name} is no number")
        for name in ("f", "k", "N"):
            value = fields.get(name)
            if value is None or (not value and name != "N"):
                continue
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                raise Impossible(event, f"{name} is no list of texts")
        explicit = fields.get("x") is not None
        undoes = fields.get("x" if explicit else "z") or ""
        names = [fields.get("a"), fields.get("s")]
        key = undoes or fields.get("n") or names[0] or names[1]
        if "" in names or (not key) == (fields.get("d") is None):
            raise Impossible(event, "no key, or one too much")
        return cls(
            key=key or "",
            action=fields.get("a"),
            committer_key=fields.get("s"),
            undoes=undoes,
            explicit=explicit,
            undo=fields.get("u"),
            committer=fields.get("c"),
            irreversible=bool(fields.get("R")),
            no_effect=tuple(fields.get("N") or ()),
            unit=_path(event, fields.get("p")),
            ended=tuple(_path(event, each) for each in fields.get("f") or ()),
            update=fields.get("h"),
            unwind=fields.get("w"),
            trigger=fields.get("t"),
            cause=fields.get("e"),
            label=fields.get("l"),
            kept=tuple(fields.get("k") or ()),
            hands_over=fields.get("d"),
            origin=fields.get("o"),
            abandons=bool(fields.get("b")),
        )


def _path(event: int, text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    if not all(part.isdecimal() and len(part) < 10 for part in text.split(".")):
        raise Impossible(event, "no path")
    return tuple(map(int, text.split(".")))


@dataclass
class Call:
    event: int
    kind: str
    name: str
    id: str
    at: dict[str, Any]
    record: Record = field(default_factory=Record)
    unmarked: bool = True
    start: Event | None = None
    settling: Event | None = None

    @property
    def undoes_for_unwind(self) -> bool:
        return self.record.hands_over is not None or (
            bool(self.record.undoes) and not self.record.explicit
        )

    @property
    def end(self) -> int | None:
        return self.settling.id if self.settling is not None else None

    @property
    def completed(self) -> bool:
        return self.settling is not None and self.settling.kind.endswith("_COMPLETED")

    @property
    def how(self) -> str | None:
        """How a child ended."""
        if self.settling is None:
            return None
        if self.settling.kind == "START_CHILD_WORKFLOW_EXECUTION_FAILED":
            return "not_started"
        return _ENDS[self.settling.kind.removeprefix("CHILD_WORKFLOW_EXECUTION_")]

    @property
    def failure(self) -> dict[str, Any]:
        failure: dict[str, Any] = self.settling.at.get("failure", {}) if self.settling else {}
        while "activityFailureInfo" in failure and "cause" in failure:
            failure = failure["cause"]
        return failure

    @property
    def raised(self) -> bool:
        return not self.completed and "applicationFailureInfo" in self.failure

    @property
    def doubt(self) -> str | None:
        return self.outcome[1]

    @property
    def outcome(self) -> tuple[str, str | None]:
        """The state of an action after it has settled, and why that is in doubt."""
        assert self.settling is not None
        kind, failure = self.settling.kind, self.failure
        if self.completed:
            return "open", None
        if kind == "START_CHILD_WORKFLOW_EXECUTION_FAILED":
            return "no_effect", None
        if kind.endswith("_CANCELED") or "canceledFailureInfo" in failure:
            return "in_doubt", "abandoned" if self.record.abandons else "cancelled"
        if kind.endswith("_TIMED_OUT"):
            single = self.at.get("retryPolicy", {}).get("maximumAttempts") == 1
            waited = failure.get("timeoutFailureInfo", {}).get("timeoutType", "")
            if single and waited == "TIMEOUT_TYPE_SCHEDULE_TO_START":
                return "no_effect", None
            return "in_doubt", "timed_out"
        if failure.get("applicationFailureInfo", {}).get("type", "") in self.record.no_effect:
            return "no_effect", None
        return "in_doubt", "raised"

    @property
    def reason(self) -> str:
        """Why an undo failed."""
        assert self.settling is not None
        if self.settling.kind.endswith("_CANCELED"):
            return "CancelledError"
        if self.settling.kind.endswith("_TIMED_OUT"):
            kind = str(self.failure["timeoutFailureInfo"]["timeoutType"])
            return kind.removeprefix("TIMEOUT_TYPE_").lower().replace("_", "-") + " timeout"
        return str(self.failure.get("applicationFailureInfo", {}).get("type") or "application")

    def plan(self, workflow_id: str) -> dict[str, Any]:
        if self.kind != "workflow" or self.name != "agboss.recovery":
            raise Impossible(self.event, "a hand-over to another workflow")
        try:
            about, plan = framed(self.at["input"]["payloads"][0])
        except (KeyError, ValueError, zlib.error):
            raise Impossible(self.event, "no plan") from None
        if about["v"] != 1 or sorted(plan["order"]) != list(range(len(plan["entries"]))):
            raise Impossible(self.event, "no plan")
        if plan["unwind"] != self.record.unwind or about["id"] != workflow_id:
            raise Impossible(self.event, "the plan of another unwind")
        return plan

    def answer(self, event: Event) -> dict[str, Any] | str:
        """Return what a child answers by key, or the type of the error in its place."""
        if not self.completed:
            if event.kind.endswith("_TERMINATED"):
                return "TerminatedError"
            if event.kind.endswith("_TIMED_OUT"):
                return "TimeoutError"
            if event.kind.endswith("_CANCELED"):
                return "CancelledError"
            return str(self.failure.get("applicationFailureInfo", {}).get("type", ""))
        try:
            about, found = framed(event.at["result"]["payloads"][0])
        except (ValueError, zlib.error):
            return "RecordError"
        if about["v"] != 1:
            raise Impossible(event.id, "an answer of another version")
        return found


def framed(payload: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    head, _, body = base64.b64decode(payload["data"]).partition(b"\n")
    return json.loads(head), json.loads(zlib.decompress(body))


def calls_of(events: Iterable[Event]) -> dict[int, Call]:
    """List the calls, with what their headers say."""
    found = {}
    for event in events:
        if event.scheduled is None:
            continue
        name = event.at.get("activityId") or event.at.get("workflowId") or ""
        call = Call(event.id, event.scheduled, event.type_name, name, event.at)
        header = event.at.get("header", {}).get("fields", {}).get("agboss-compensation")
        if header is not None:
            try:
                fields = json.loads(base64.b64decode(header["data"]))
            except ValueError:
                raise Impossible(event.id, "no JSON") from None
            call.record, call.unmarked = Record.of(event.id, fields), False
        found[event.id] = call
    return found


def check_calls(events: list[Event], calls: dict[int, Call]) -> None:
    """Match events with calls; each starts at most once, and settles at most once."""
    task: int | None = None
    for event in events:
        if event.id > 1 and event.kind == "WORKFLOW_EXECUTION_STARTED":
            raise Impossible(event.id, "a second start")
        if any(e.closes for e in events[: event.id - 1]):
            raise Impossible(event.id, "after the end")
        if event.kind == "WORKFLOW_TASK_STARTED":
            task = event.id
        named = int(event.at.get("startedEventId", 0)) in (0, task)
        if event.kind == "WORKFLOW_TASK_COMPLETED" and (task is None or not named):
            raise Impossible(event.id, "a task that was not started")
        if event.kind in TASK_ENDS:
            task = None
        kind = {**STARTS, **CANCELS, **SETTLES}.get(event.kind)
        if kind is None:
            continue
        call = calls.get(event.about)
        if call is None or call.event > event.id or call.kind != kind:
            raise Impossible(event.id, "about nothing")
        if call.settling is not None:
            raise Impossible(event.id, "about what has settled")
        if event.kind in STARTS:
            if call.start is not None:
                raise Impossible(event.id, "a second start")
            call.start = event
        if event.kind in SETTLES:
            needs_start = event.kind.endswith(("_COMPLETED", "_FAILED"))
            if needs_start and call.start is None and not event.kind.startswith("START_CHILD"):
                raise Impossible(event.id, "never started")
            call.settling = event
