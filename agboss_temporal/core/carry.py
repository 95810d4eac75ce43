"""Entries on their way from one run to another, and the record that continues a run as new."""

from __future__ import annotations

import base64
import json
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.errors import RecordError

MEMO: Final = "agboss-compensation"
"""Name of the memo field."""


@dataclass(frozen=True)
class Carried:
    """One entry on its way to the next run. Payloads are serialized.

    Attributes:
        key: Key of the entry; kept.
        contract: Names and options as they were; what the next worker declares wins.
        raw: The recorded result.
        args: The recorded arguments, where the undo needs them.
        doubt: Why its outcome is unknown.
        task_queue: The queue on which it was scheduled.
        priority: The priority with which it was scheduled.
        after: How many of those carried with it had settled when it was started; ``None`` for all
            before it, as in sequential code.
        undo_options: Options of the contract in JSON form, where the next worker is not to decide.
        origin: Id of the workflow whose history holds the entry, if not the one that plans.
    """

    key: str
    contract: Contract
    raw: bytes | None = None
    args: tuple[bytes, ...] = ()
    doubt: str | None = None
    task_queue: str | None = None
    priority: tuple[Any, ...] | None = None
    after: int | None = None
    undo_options: Mapping[str, Any] | None = None
    origin: str | None = None


def overlaps(settled: Sequence[Entry]) -> list[int | None]:
    """Say of each entry how many of these had settled when it was started.

    Args:
        settled: Entries in the order in which they settled.

    Returns:
        A number for each; ``None`` where it is all before it.
    """
    sequences = [entry.sequence for entry in settled]
    starts = [bisect_right(sequences, entry.after) for entry in settled]
    return [None if start == place else start for place, start in enumerate(starts)]


def carried(
    entry: Entry, queue: str, priority: tuple[Any, ...] | None, after: int | None = None
) -> Carried:
    """Take an entry along; one without a queue of its own keeps the queue of its run."""
    return Carried(
        key=entry.key,
        contract=entry.contract,
        raw=None if entry.raw is None else entry.raw.SerializeToString(),
        args=tuple(payload.SerializeToString() for payload in entry.args),
        doubt=entry.doubt,
        task_queue=entry.task_queue or queue,
        priority=priority,
        after=after,
    )


def encode(entries: Sequence[Carried], run_id: str) -> bytes:
    """Write entries, in their order, for the run that follows ``run_id``."""
    rows = json.dumps([row_of(entry) for entry in entries], separators=(",", ":")).encode()
    record = {"v": 1, "run": run_id, "n": len(entries), "z": _text(zlib.compress(rows, 9))}
    return json.dumps(record, separators=(",", ":")).encode()


def written_by(data: bytes) -> str:
    """Return the id of the run that wrote a record.

    Raises:
        RecordError: It is not a record, or of a version that this code cannot read.
    """
    return str(_record(data)["run"])


def decode(data: bytes) -> list[Carried]:
    """Read the entries, oldest first.

    Raises:
        RecordError: It is not a record, or of a version that this code cannot read.
    """
    record = _record(data)
    try:
        rows = json.loads(zlib.decompress(base64.b64decode(record["z"])))
        return [from_row(row) for row in rows]
    except (KeyError, TypeError, ValueError, zlib.error) as err:
        raise RecordError("the carried ledger in the memo is damaged") from err


def _record(data: bytes) -> dict[str, Any]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise RecordError("the carried ledger in the memo is not JSON") from err
    if not isinstance(record, dict) or record.get("v") != 1 or "run" not in record:
        raise RecordError("the carried ledger in the memo is of a version that this code lacks")
    return record


def row_of(entry: Carried) -> dict[str, Any]:
    """Write an entry as JSON; a field that is absent has its default."""
    contract = entry.contract
    fields: dict[str, Any] = {
        "k": entry.key,
        "a": contract.action,
        "t": "workflow" if contract.kind == "workflow" else None,
        "u": contract.undo,
        "c": contract.committer,
        "i": None if contract.undo_input == "result" else contract.undo_input,
        "d": 1 if contract.on_unknown == "undo" else None,
        "x": 1 if contract.irreversible else None,
        "r": None if entry.raw is None else _text(entry.raw),
        "g": [_text(arg) for arg in entry.args] or None,
        "w": entry.doubt,
        "q": entry.task_queue,
        "p": entry.priority,
        "s": entry.after,
        "o": entry.undo_options or None,
        "f": entry.origin,
    }
    return {name: value for name, value in fields.items() if value is not None}


def from_row(row: Mapping[str, Any]) -> Carried:
    """Read an entry; fields that this version does not know are passed over."""
    contract = Contract(
        action=row["a"],
        kind=row.get("t", "activity"),
        undo=row.get("u"),
        committer=row.get("c"),
        undo_input=row.get("i", "result"),
        on_unknown="undo" if row.get("d") else "report",
        irreversible=bool(row.get("x")),
    )
    return Carried(
        key=row["k"],
        contract=contract,
        raw=base64.b64decode(row["r"]) if "r" in row else None,
        args=tuple(base64.b64decode(arg) for arg in row.get("g", ())),
        doubt=row.get("w"),
        task_queue=row.get("q"),
        priority=tuple(row["p"]) if "p" in row else None,
        after=row.get("s"),
        undo_options=row.get("o"),
        origin=row.get("f"),
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
