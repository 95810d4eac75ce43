"""The ledger of a run, read out of its exported history a second way.

Where the library folds the events once and keeps state, this asks of each entry by itself: what
does the whole list say about it, event by event? It works on the JSON of an export, shares no code
with the library, is quadratic, and knows runs without codec and without ``contracts``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.mutation.events import CLOSES, Call, Event, Impossible, calls_of, check_calls, framed

READY = ("open", "in_doubt")
PENDING = ("running", "open", "in_doubt", "undoing")
QUIET = ("failed", "skipped", "denied", "not_run", "irreversible")
"""Verdicts that no event shows."""


@dataclass
class Life:
    """One entry: where it is from, and where it stands after an event."""

    key: str
    action: str
    undo: str | None
    committer: str | None
    irreversible: bool
    unit: tuple[int, ...]
    begun: int
    call: Call | None = None
    state: str = "running"
    doubt: str | None = None
    settled: int | None = None
    handed_to: str | None = None
    calls: list[tuple[int, str | None]] = field(default_factory=list)
    verdicts: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kind = "activity"
        self.told = self.unit
        self.committed = False
        self.dismissed = False

    def ready(self, event: int) -> None:
        if self.state == "running" and self.call is not None and self.call.record.abandons:
            self.state, self.doubt, self.settled = "in_doubt", "abandoned", event
        elif self.state == "sealed":
            self.reopen()
        elif self.state == "no_effect" and self.dismissed:
            self.doubt = "raised"
            self.reopen()
        if self.state not in READY:
            raise Impossible(event, f"{self.key} is {self.state} and is undone")

    def reopen(self) -> None:
        self.state = "open" if self.doubt is None else "in_doubt"

    def seal_after_undo(self) -> None:
        self.reopen()
        if self.committed:
            self.state = "sealed"

    def decide(self, event: int, unwind: int, verdict: str, reason: str | None) -> None:
        if self.state == "sealed":
            self.reopen()
        if self.state not in READY:
            raise Impossible(event, f"{self.key} is {self.state} and cannot be {verdict}")
        self.state = verdict
        self.verdicts[unwind] = (verdict, reason)


def before(one: Life, other: Life) -> bool:
    """Tell whether an unwind turns to one entry before it turns to another."""

    def place(life: Life) -> tuple[bool, int]:
        ordinal = life.key.rpartition("-")[2]
        if life.doubt is not None:
            return False, -int(ordinal) if ordinal.isdecimal() else 0
        return True, -(life.settled or 0)

    return place(one) < place(other)


class Reread:
    """A history, read again."""

    def __init__(self, export: dict[str, Any]) -> None:
        self.events = [Event.of(each) for each in export["events"]]
        self.recovers = self.events[0].type_name == "agboss.recovery"
        self.workflow_id = self.events[0].at.get("workflowId", "")
        self.calls = calls_of(self.events)
        check_calls(self.events, self.calls)
        self.unreadable: list[tuple[int, str]] = []

    # -- what the list says of unwinds

    def check_undos(self) -> None:
        """Refuse what says by itself that no workflow has asked for it."""
        for call in self.calls.values():
            record = call.record
            keys = [key for key, _ in self.asked(call)]
            if len(set(keys)) < len(keys):
                raise Impossible(call.event, "one entry twice")
            if any(self.lives[key].begun > call.event for key in keys):
                raise Impossible(call.event, "an undo before its action")
            if record.undoes and call.kind != "activity":
                raise Impossible(call.event, "an undo that is no activity")
            if record.undoes and (record.origin is not None) != self.recovers:
                raise Impossible(call.event, "an undo for somebody else")
            if call.undoes_for_unwind and (record.unwind is None or record.unwind < 1):
                raise Impossible(call.event, "an undo of no unwind")
            if call.undoes_for_unwind and record.unwind in self.given:
                planned = [row["k"] for row in self.own_plan["entries"]]
                if not set(keys) <= set(planned):
                    raise Impossible(call.event, "an undo of what is not in the plan")
        for unwind in self.unwinds:
            if unwind in self.given:
                continue
            first, *_ = self.calls_of(unwind)
            for key in first.record.kept:
                life = self.lives.get(key)
                if life is None or not life.irreversible or life.begun > first.event:
                    raise Impossible(first.event, "what is kept is not irreversible")

    def calls_of(self, unwind: int) -> list[Call]:
        return [c for c in self.calls.values() if c.record.unwind == unwind and c.undoes_for_unwind]

    @cached_property
    def unwinds(self) -> list[int]:
        found = [c.record.unwind for c in self.calls.values() if c.undoes_for_unwind]
        return list(dict.fromkeys(number for number in found if number is not None))

    def rests(self, unwind: int) -> list[int]:
        """List the events at which it is plain that an unwind went no further."""
        found = []
        mine = self.calls_of(unwind)
        for task in self.events:
            if task.kind != "WORKFLOW_TASK_COMPLETED":
                continue
            begun = [c for c in mine if c.event < task.id]
            if not begun or any(c.end is None or c.end > task.id for c in begun):
                continue
            later = [e for e in self.events[task.id :] if e.shows_that_commands_are_over]
            at = later[0].id if later else len(self.events) + 1
            if not any(task.id < c.event < at for c in mine):
                found.append(at)
        return found[:1]

    def is_over(self, unwind: int) -> bool:
        mine = self.calls_of(unwind)
        ends = [c.end for c in mine]
        if not ends or None in ends:
            return False
        last = max(end for end in ends if end is not None)
        tasks = [e.id for e in self.events if e.kind == "WORKFLOW_TASK_COMPLETED"]
        return any(last < task for task in tasks)

    # -- what it says of entries

    @cached_property
    def lives(self) -> dict[str, Life]:
        found: dict[str, Life] = {}

        def enter(life: Life) -> None:
            if life.key in found:
                raise Impossible(life.begun, f"{life.key} twice")
            found[life.key] = life

        for number, row in enumerate(self.handed_on):
            enter(carried(row, number - len(self.handed_on)))
        for call in self.calls.values():
            record = call.record
            if record.action is not None and record.hands_over is None:
                if record.undo is None and not record.irreversible:
                    raise Impossible(call.event, "an action without an undo")
                enter(
                    Life(
                        record.action,
                        call.name,
                        record.undo,
                        record.committer,
                        record.irreversible,
                        record.unit,
                        call.event,
                        call,
                    )
                )
            for key, undo in self.asked(call):
                if key not in found:
                    self.invent(call, key, undo, found)
        return found

    def asked(self, call: Call) -> list[tuple[str, str | None]]:
        """List the entries that a call undoes, with the undo."""
        if call.record.hands_over is not None:
            plan = call.plan(self.workflow_id)
            return [(plan["entries"][n]["k"], plan["entries"][n].get("u")) for n in plan["order"]]
        return [(call.record.undoes, call.name)] if call.record.undoes else []

    def invent(self, call: Call, key: str, undo: str | None, found: dict[str, Life]) -> None:
        hidden = any(c.unmarked for c in self.calls.values() if c.event < call.event)
        if not hidden and not self.unreadable:
            raise Impossible(call.event, f"{key} was never started")
        self.unreadable.append((call.event, "undo"))
        life = Life(key, "unknown", undo, None, False, (), call.event)
        life.state, life.settled = "open", call.event
        found[key] = life

    @cached_property
    def handed_on(self) -> list[dict[str, Any]]:
        """List the entries that the run begins with."""
        if self.recovers:
            return list(self.own_plan["entries"])
        started = self.events[0].at
        memo = started.get("memo", {}).get("fields", {}).get("agboss-compensation")
        if memo is None or not started.get("continuedExecutionRunId"):
            return []
        record = json.loads(base64.b64decode(memo["data"]))
        if record["run"] != started["continuedExecutionRunId"]:
            return []
        rows: list[dict[str, Any]] = json.loads(zlib.decompress(base64.b64decode(record["z"])))
        return rows

    @cached_property
    def own_plan(self) -> dict[str, Any]:
        return unframed(1, self.events[0].at["input"]["payloads"][0])

    @cached_property
    def given(self) -> list[int]:
        """List the unwinds whose whole plan the run begins with."""
        return [self.own_plan["unwind"]] if self.recovers else []

    def live(self, life: Life) -> Life:
        """Go through the whole list for one entry."""
        kept_at = self.kept_at(life)
        for event in self.events:
            if event.id < life.begun:
                continue
            for unwind, when in kept_at.items():
                if when == event.id and event.shows_that_commands_are_over:
                    self.keep(life, unwind)
            if event.scheduled is not None:
                self.on_scheduled(life, self.calls[event.id], kept_at)
            elif event.settles is not None:
                self.on_settled(life, event, self.calls[event.settles])
            elif event.kind == "WORKFLOW_PROPERTIES_MODIFIED":
                self.on_sealed(life, event)
            elif event.kind == "WORKFLOW_EXECUTION_UPDATE_COMPLETED":
                self.on_updated(life, event)
            elif event.closes:
                self.on_closed(life, event)
        for unwind, when in kept_at.items():
            if when > len(self.events):
                self.keep(life, unwind)
        return life

    def kept_at(self, life: Life) -> dict[int, int]:
        """Find by unwind when an irreversible entry has its verdict."""
        found = {}
        for unwind in self.unwinds:
            first, *_ = mine = self.calls_of(unwind)
            if life.key not in first.record.kept:
                continue
            moments = [c.event for c in mine if c.record.hands_over is not None]
            for call in mine:
                if call.record.hands_over is None:
                    whose = self.settled_before(self.lives[call.record.undoes], call.event)
                    if before(self.settled_before(life, call.event), whose):
                        moments.append(call.event)
            moments += self.rests(unwind)
            if moments:
                found[unwind] = min(moments)
        return found

    def settled_before(self, life: Life, event: int) -> Life:
        """Return an entry as far as it had settled when a call was made."""
        copy = Life(life.key, life.action, None, None, False, (), life.begun, life.call)
        copy.doubt, copy.settled = life.doubt, life.settled
        if life.call is not None and life.call.end is not None and life.call.end < event:
            copy.settled = life.call.end
            copy.doubt = life.call.doubt
        elif life.call is not None and life.call.record.abandons:
            copy.doubt = "abandoned"
        return copy

    def keep(self, life: Life, unwind: int) -> None:
        if life.state in READY:
            life.state = "irreversible"
        life.verdicts.setdefault(unwind, ("irreversible", None))

    def on_scheduled(self, life: Life, call: Call, kept_at: dict[int, int]) -> None:
        record = call.record
        if record.hands_over is None and life.state in PENDING and life.committer is not None:
            while life.told in record.ended:
                life.told = life.told[:-1]
        for unwind, when in kept_at.items():
            if when == call.event:
                self.keep(life, unwind)
        if all(key != life.key for key, _ in self.asked(call)):
            return
        life.ready(call.event)
        life.state = "undoing"
        life.calls.append((call.event, None))
        if not record.explicit:
            assert record.unwind is not None
            life.verdicts[record.unwind] = (None, None)
        if record.hands_over is not None:
            life.handed_to = call.id

    def on_settled(self, life: Life, event: Event, call: Call) -> None:
        if life.call is call and life.state == "running":
            life.state, life.doubt = call.outcome
            life.dismissed = call.raised
            if life.state != "no_effect":
                life.settled = event.id
        record = call.record
        commits = record.committer_key is not None and record.hands_over is None
        if call.completed and commits and life.committer == call.name:
            short = min(len(life.told), len(record.unit))
            if life.told[:short] == record.unit[:short]:
                if life.state == "undoing":
                    life.committed = True
                elif life.state in READY:
                    life.state = "sealed"
        if record.hands_over is not None:
            self.on_answered(life, event, call)
        elif record.undoes == life.key:
            self.on_undone(life, call)

    def on_undone(self, life: Life, call: Call) -> None:
        reason = None if call.completed else call.reason
        outcome = "completed" if call.completed else "failed"
        life.calls = [(e, outcome if e == call.event else o) for e, o in life.calls]
        if not call.record.explicit:
            assert call.record.unwind is not None
            life.state = "undone" if call.completed else "failed"
            life.verdicts[call.record.unwind] = (life.state, reason)
        elif life.state == "undoing":
            if call.completed:
                life.state = "undone"
            else:
                life.seal_after_undo()

    def on_answered(self, life: Life, event: Event, call: Call) -> None:
        if all(key != life.key for key, _ in self.asked(call)):
            return
        unwind = call.record.unwind
        assert unwind is not None
        answer = call.answer(event)
        told = answer if isinstance(answer, str) else answer.get(life.key)
        if isinstance(told, str):
            verdict, reason, known = "failed", f"handed to a workflow that ended with {told}", None
        elif told is None:
            verdict, reason, known = "failed", "it was not answered for", None
        else:
            verdict, reason = told[0], told[1]
            if verdict not in ("undone", "skipped", "denied", "not_run"):
                verdict = "failed"
            known = "completed" if verdict == "undone" else "failed"
        if verdict in ("undone", "failed"):
            life.state = verdict
            life.calls = [(e, known if e == call.event else o) for e, o in life.calls]
        else:
            life.calls = [(e, o) for e, o in life.calls if e != call.event]
            life.seal_after_undo()
            if life.state == "sealed":
                del life.verdicts[unwind]
                return
            life.state = verdict
        life.verdicts[unwind] = (verdict, reason)

    def on_sealed(self, life: Life, event: Event) -> None:
        fields = event.at.get("upsertedMemo", {}).get("fields", {})
        if "agboss-sealed" not in fields or not fields["agboss-sealed"].get("data"):
            return
        text = json.loads(base64.b64decode(fields["agboss-sealed"]["data"]))
        for part in text.split():
            unit = path_of(part.lstrip("="))
            covers = life.told == unit if "=" in text else life.told[: len(unit)] == unit
            if life.state == "open" and covers:
                life.state = "sealed"

    def on_updated(self, life: Life, event: Event) -> None:
        if "success" not in event.at.get("outcome", {}):
            return
        digest = hashlib.sha256(event.at["meta"]["updateId"].encode()).digest()[:9]
        update = base64.b64encode(digest).decode()
        units = [
            c.record.unit[:1]
            for c in self.calls.values()
            if c.event < event.id and c.record.update == update and c.record.hands_over is None
        ]
        answered = [
            e.id
            for e in self.events[: event.id - 1]
            if e.kind == event.kind
            and e.at["meta"]["updateId"] == event.at["meta"]["updateId"]
            and "success" in e.at.get("outcome", {})
        ]
        news = [c.event for c in self.calls.values() if c.record.update == update]
        if not units or any(all(n < a or n > event.id for n in news) for a in answered):
            return
        inside = life.told[: len(units[-1])] == units[-1]
        if life.state == "open" and life.committer is None and inside:
            life.state = "sealed"

    def on_closed(self, life: Life, event: Event) -> None:
        report, types = event.report
        if self.recovers and event.kind.endswith("EXECUTION_COMPLETED"):
            self.compare(life, event, self.result_of(event, life))
        if report is not None:
            for told in report.get("entries", ()):
                if told["key"] == life.key and told.get("verdict") is not None:
                    known = {u["ordinal"] for u in report["unwinds"]} | {*self.unwinds}
                    if told["unwind"] in known:
                        row = (told["unwind"], told["verdict"], told.get("reason"))
                        self.compare(life, event, row)
        completed = event.kind.endswith("EXECUTION_COMPLETED")
        if life.state == "open" and (completed or "UncommittedActionError" in types):
            life.state = "sealed"
        if life.state == "running":
            life.state, life.doubt, life.settled = "in_doubt", "abandoned", event.id

    def result_of(self, event: Event, life: Life) -> tuple[int, str, str | None]:
        result = unframed(event.id, event.at["result"]["payloads"][0])
        if sorted(result) != sorted(row["k"] for row in self.handed_on):
            raise Impossible(event.id, "a result for another plan")
        verdict, reason, *_ = result[life.key]
        return self.own_plan["unwind"], verdict, reason

    def compare(self, life: Life, event: Event, told: tuple[int, str, str | None]) -> None:
        unwind, verdict, reason = told
        mine, _ = life.verdicts.get(unwind, (None, None))
        if mine is None and life.state != "undoing" and verdict in QUIET:
            life.decide(event.id, unwind, verdict, reason)
        elif mine != verdict:
            raise Impossible(event.id, f"{life.key} is told to be {verdict}")

    # -- all of it

    def read(self) -> dict[str, Any]:
        """Return all that is compared."""
        self.check_undos()
        lives = [self.live(life) for life in self.lives.values()]
        end = next((e for e in self.events if e.closes), None)
        told, _ = end.report if end is not None else (None, [])
        closed_at = {u["ordinal"]: u["ended_at"] for u in (told or {}).get("unwinds", ())}
        verdicts = [
            (unwind, life.key, *row) for life in lives for unwind, row in life.verdicts.items()
        ]
        if self.recovers:
            mine = self.own_plan["unwind"]
            done = {key for unwind, key, *_ in verdicts if unwind == mine}
            keys = [row["k"] for row in self.own_plan["entries"]]
            verdicts += [(mine, key, None, None) for key in keys if key not in done]
        unwinds = {}
        for number in {*self.unwinds, *closed_at, *self.given}:
            rows = [verdict for unwind, _, verdict, _ in verdicts if unwind == number]
            over = self.is_over(number)
            if number in closed_at:
                over = closed_at[number] is not None
            elif self.recovers and end is not None and CLOSES[end.kind] == "completed":
                over = over or number in self.given
            unwinds[number] = (*self.about(number, told), status(rows, over=over))
        settled = [life for life in lives if life.settled is not None]
        return {
            "entries": {
                life.key: (life.action, life.state, life.doubt, life.handed_to, tuple(life.calls))
                for life in lives
            },
            "order": [life.key for life in sorted(settled, key=lambda each: each.settled or 0)],
            "unwinds": unwinds,
            "verdicts": sorted(verdicts, key=repr),
            "in_doubt": sorted(self.in_doubt(lives, closed=end is not None)),
            "children": [
                (c.event, c.name, c.id, c.how, c.record.hands_over is not None)
                for c in self.calls.values()
                if c.kind == "workflow"
            ],
            "end": CLOSES[end.kind] if end is not None else None,
            "unrecorded": self.unrecorded(lives),
            "unreadable": self.unreadable,
        }

    def about(self, unwind: int, told: dict[str, Any] | None) -> tuple[str, str | None, str | None]:
        """Return what started an unwind, and the unit that it is of."""
        if unwind in self.given:
            return self.own_plan["trigger"], self.own_plan.get("cause"), None
        mine = self.calls_of(unwind)
        if mine:
            record = mine[0].record
            return record.trigger or "unknown", record.cause, record.label
        [found] = [u for u in (told or {})["unwinds"] if u["ordinal"] == unwind]
        return found["trigger"], found["cause"], found["unit"]

    def in_doubt(self, lives: list[Life], *, closed: bool) -> list[tuple[str, str, str]]:
        doubtful = [life for life in lives if life.state == "in_doubt"]
        found = [(life.key, life.doubt or "", "action") for life in doubtful]
        for call in self.calls.values():
            if call.record.committer_key is None:
                continue
            doubt = "abandoned" if closed else None
            if call.settling is not None:
                doubt = None if call.completed else call.doubt
            if doubt is not None:
                found.append((call.record.key, doubt, "committer"))
        return found

    def unrecorded(self, lives: list[Life]) -> list[int]:
        actions = {
            (life.call.kind if life.call is not None else life.kind, life.action) for life in lives
        }
        return [c.event for c in self.calls.values() if c.unmarked and (c.kind, c.name) in actions]


def status(verdicts: list[str | None], *, over: bool) -> str:
    if not verdicts:
        return "none" if over else "pending"
    if not over or None in verdicts:
        return "running"
    undone = [each for each in verdicts if each == "undone"]
    if undone:
        return "completed" if len(undone) == len(verdicts) else "partial"
    return "failed"


def carried(row: dict[str, Any], settled: int) -> Life:
    life = Life(row["k"], row["a"], row.get("u"), row.get("c"), bool(row.get("x")), (), 1)
    life.kind = row.get("t", "activity")
    life.doubt, life.settled = row.get("w"), settled
    life.reopen()
    return life


def path_of(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", text):
        raise Impossible(0, "no path")
    return tuple(int(part) for part in text.split("."))


def unframed(event: int, payload: dict[str, Any]) -> dict[str, Any]:
    try:
        about, found = framed(payload)
    except (ValueError, zlib.error):
        raise Impossible(event, "no such record") from None
    if about["v"] != 1:
        raise Impossible(event, "another version")
    return found
