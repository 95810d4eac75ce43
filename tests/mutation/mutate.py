"""Changes exported histories, so that they stay well-formed and mostly cannot be true."""

from __future__ import annotations

import base64
import copy
import json
import re
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Export = dict[str, Any]

HEADER = "agboss-compensation"
RECOVERY = "agboss.recovery"
HEARTBEAT = "TIMEOUT_TYPE_HEARTBEAT"


def mutated(export: Export, rng: Random) -> Export:
    """Change a history in one to three ways."""
    events = [(number, event) for number, event in enumerate(copy.deepcopy(export["events"]), 1)]
    for _ in range(rng.choice([1, 1, 2, 3])):
        change = rng.choices(list(_CHANGES), list(_CHANGES.values()))[0]
        change(events, rng)
    return {"events": renumbered(events, rng)}


Events = list[tuple[int, dict[str, Any]]]


def drop(events: Events, rng: Random) -> None:
    if len(events) > 2:
        del events[rng.randrange(1, len(events))]


def cut(events: Events, rng: Random) -> None:
    del events[rng.randrange(1, len(events)) + 1 :]


def swap(events: Events, rng: Random) -> None:
    one = rng.randrange(1, len(events))
    other = min(len(events) - 1, one + rng.choice([1, 1, 1, 2, 3, 8]))
    events[one], events[other] = events[other], events[one]


def duplicate(events: Events, rng: Random) -> None:
    number = rng.randrange(1, len(events))
    later = min(len(events), number + rng.choice([1, 1, 2, 5]))
    events.insert(later, copy.deepcopy(events[number]))


def drop_call(events: Events, rng: Random) -> None:
    """Leave out all events of one call, or all but the one that scheduled it."""
    calls = [
        n for n, e in events if "_TASK_SCHEDULED" in e["eventType"] or "INITIATED" in e["eventType"]
    ]
    if calls:
        of = rng.choice(calls)
        keeps = rng.random() < 0.4
        events[:] = [(n, e) for n, e in events if not (n == of and not keeps) and _about(e) != of]


def _about(event: dict[str, Any]) -> int:
    about = attributes(event)
    return int(about.get("scheduledEventId") or about.get("initiatedEventId") or 0)


def resettle(events: Events, rng: Random) -> None:
    """Have a call that was settled end in another way."""
    settled = [
        (place, event)
        for place, (_, event) in enumerate(events)
        if re.search("ACTIVITY_TASK_(COMPLETED|FAILED)$", event["eventType"])
    ]
    if not settled:
        return
    place, event = rng.choice(settled)
    about = attributes(event)
    kept = {n: about[n] for n in ("scheduledEventId", "startedEventId") if n in about}
    kind, field, added = rng.choice(
        [
            ("COMPLETED", "Completed", {}),
            ("CANCELED", "Canceled", {}),
            ("FAILED", "Failed", _failure("applicationFailureInfo", type="Other")),
            (
                "TIMED_OUT",
                "TimedOut",
                _failure("timeoutFailureInfo", timeoutType="TIMEOUT_TYPE_HEARTBEAT"),
            ),
        ]
    )
    changed = {n: v for n, v in event.items() if not n.endswith("Attributes")}
    changed["eventType"] = f"EVENT_TYPE_ACTIVITY_TASK_{kind}"
    changed[f"activityTask{field}EventAttributes"] = {**kept, **added}
    events[place] = events[place][0], changed


def _failure(info: str, **fields: str) -> dict[str, Any]:
    return {"failure": {"message": "forged", info: fields}}


def retarget(events: Events, rng: Random) -> None:
    """Have an event be about another call."""
    abouts = [e for _, e in events if _about(e)]
    if abouts:
        about = attributes(rng.choice(abouts))
        name = "scheduledEventId" if "scheduledEventId" in about else "initiatedEventId"
        about[name] = str(_about(rng.choice(abouts)))


def forge_header(events: Events, rng: Random) -> None:
    """Change what the header of one call says."""
    headers = [h for _, e in events if (h := attributes(e).get("header", {}).get("fields", {}))]
    headers = [h for h in headers if HEADER in h and _is_json(h[HEADER]["data"])]
    if not headers:
        return
    header = rng.choice(headers)
    fields = json.loads(base64.b64decode(header[HEADER]["data"]))
    others = [json.loads(base64.b64decode(h[HEADER]["data"])) for h in headers]
    what = rng.randrange(9) if fields else 0
    if what == 0:
        del header[HEADER]
        return
    name = rng.choice(list(fields))
    if what == 1:
        fields["v"] = rng.choice([1, 2, "1"])
    elif what == 2:
        del fields[name]
    elif what == 3:
        fields[name] = rng.choice([7, True, None, [], ["x"], {}, "", "x"])
    elif what == 4:
        fields[name] = rng.choice([other[name] for other in others if name in other])
    elif what == 5:
        fields["w"] = rng.choice([0, 1, 2, -1])
    elif what == 6:
        fields[rng.choice("bDR")] = 1
    elif what == 7:
        fields[rng.choice("cu")] = rng.choice(["charge", "explode", "ship", "refund"])
    else:
        named: list[tuple[str, Any]] = [
            ("p", "1"),
            ("p", "1.x"),
            ("o", "elsewhere"),
            ("f", ["1"]),
            ("k", [f"{fields.get('a')}"]),
            ("z", f"{fields.get('a') or fields.get('z')}"),
            ("x", ""),
            ("d", 1),
            ("new", "field"),
            ("N", ["Boom"]),
            ("l", "part"),
            ("t", "join"),
            ("e", "Other"),
        ]
        fields.update([rng.choice(named)])
    data = json.dumps(fields).encode()
    header[HEADER]["data"] = base64.b64encode(data if rng.random() < 0.97 else data[:-1]).decode()


def _is_json(data: str) -> bool:
    try:
        return isinstance(json.loads(base64.b64decode(data)), dict)
    except ValueError:
        return False


def forge_outcome(events: Events, rng: Random) -> None:
    """Change a report, a plan, or what became of one."""
    found: list[tuple[Callable[[dict[str, Any], Random], None], dict[str, Any]]] = []
    recovery = attributes(events[0][1]).get("workflowType", {}).get("name") == RECOVERY
    for _, event in events:
        about = attributes(event)
        details = about.get("failure", {}).get("applicationFailureInfo", {}).get("details", {})
        for payload in details.get("payloads", ()):
            found.append((_forge_report, payload))
        is_child = about.get("workflowType", {}).get("name") == RECOVERY
        held = about.get("input" if "input" in about else "result", {}).get("payloads", [])
        ends = recovery and event["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"
        if (is_child or ends) and held:
            found.append((_forge_frame, held[0]))
    if found:
        forge, payload = rng.choice(found)
        forge(payload, rng)


def _forge_report(payload: dict[str, Any], rng: Random) -> None:
    report = json.loads(base64.b64decode(payload["data"]))
    if not report["entries"]:
        return
    entry = rng.choice(report["entries"])
    if rng.random() < 0.2:
        report["entries"].remove(entry)
    else:
        entry["verdict"] = rng.choice(["undone", "failed", "not_run", "skipped", "irreversible"])
    payload["data"] = base64.b64encode(json.dumps(report).encode()).decode()


def _forge_frame(payload: dict[str, Any], rng: Random) -> None:
    head, _, body = base64.b64decode(payload["data"]).partition(b"\n")
    try:
        about, rows = json.loads(head), json.loads(zlib.decompress(body))
    except (ValueError, zlib.error):
        return  # It is damaged already.
    if rng.random() < 0.1:
        about["v"] = 2
    elif "entries" in rows:
        row = rng.choice(rows["entries"])
        row.update(rng.choice([{"k": "0-1"}, {"u": "other"}, {"w": "timed_out"}, {"s": 0}]))
        if rng.random() < 0.2:
            rows["unwind"] += 1
    elif rows:
        key = rng.choice(list(rows))
        if rng.random() < 0.3:
            del rows[key]
        else:
            rows[key][0] = rng.choice(["undone", "failed", "not_run", "skipped", "denied", "else"])
    data = json.dumps(about).encode() + b"\n" + zlib.compress(json.dumps(rows).encode())
    payload["data"] = base64.b64encode(data if rng.random() < 0.9 else data[:-9]).decode()


_CHANGES: dict[Callable[[Events, Random], None], int] = {
    drop: 2,
    drop_call: 3,
    cut: 2,
    swap: 3,
    duplicate: 2,
    resettle: 6,
    retarget: 1,
    forge_header: 8,
    forge_outcome: 4,
}


def attributes(event: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [v for n, v in event.items() if n.endswith("Attributes")]
    return found[0] if found else {}


def renumbered(events: Events, rng: Random) -> list[dict[str, Any]]:
    """Number events again; what refers to an event that is gone refers to any."""
    places: dict[int, list[int]] = {}
    for place, (number, _) in enumerate(events, 1):
        places.setdefault(number, []).append(place)
    for place, (_, event) in enumerate(events, 1):
        event["eventId"] = str(place)
        about = attributes(event)
        for name, number in about.items():
            if name.endswith("EventId") and int(number) > 0:
                where = places.get(int(number)) or [int(number), len(events) + 7]
                about[name] = str(rng.choice(where))
    return [event for _, event in events]
