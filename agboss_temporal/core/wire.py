"""The record that travels with a named call: one small JSON object in a header, versioned.

It holds names and keys, never user data, because headers are plain text by default. A field that
is absent has its default; a version that is absent is 1. Keys are short because a record is
written for every named call.

======  ===========================================================
``v``   version, absent for 1
``a``   the call is an action: its key
``s``   the call is a committer: its key
``z``   the call is an undo of an unwind: the key that it undoes
``x``   the call is an undo made by the workflow's code: the key
        that it undoes, empty if it could not be told
``n``   own key of an ``x`` that undoes nothing known
``u``   name of the undo
``c``   name of the committer
``p``   unit path, ordinals joined by dots
``f``   on a committer: paths of units that have ended since and
        handed over what is open to the unit around them
``h``   on the first call of an update handler: which update it is,
        see `update_digest`
``w``   ordinal of the unwind, from 1
``t``   trigger of the unwind, on its first undo
``e``   type of the error that started it, on its first undo
``d``   the call is a child that takes over a part of the
        unwind: its number in the run, from 1
``o``   on an undo that another workflow runs: id of the
        workflow whose history holds the entry
``l``   what reports call the unit that is unwound, on its first
        undo or child; absent for the run
``m``   on an undo: name of the action that it undoes, for metrics
        and spans where the undo runs
``y``   on an undo, where the run is traced: the span of its
        action, as a W3C ``traceparent``
``k``   on its first undo or child: keys of the irreversible
        actions that the unwind answers for, because nothing else
        shows them
``b``   the call is abandoned when it is cancelled: it may settle
        without the workflow, or be undone before it has settled
``A…Z`` options of the contract that are not default
======  ===========================================================
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from string import ascii_uppercase
from typing import Any, Final, Literal, Self, TypeAlias

from agboss_temporal.core import reading
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.scope import UnitPath, parse_path, path_text

HEADER: Final = "agboss-compensation"
"""Name of the header."""

_text, _number = (reading.of(kind, type(None)) for kind in (str, int))
_texts = reading.each(reading.of(str))

_OPTIONS: Final[Mapping[str, reading.Reader]] = {
    "I": reading.of(str),
    "N": _texts,
    "Q": reading.of(str),
    "S": reading.of(int, float),
    "C": reading.of(int, float),
    "H": reading.of(int, float),
    "M": reading.of(int),
}

Role: TypeAlias = Literal["action", "committer", "undo"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What the header of a named call says.

    Attributes:
        action_key: Key of the execution, if the call is an action.
        committer_key: Key of the call, if it is a committer.
        undoes: Key of the entry that it undoes, if it is an undo; empty if that is not known.
        explicit: Whether an undo was called by the workflow's code.
        own_key: Key of an undo that undoes no known entry.
        undo: Name of the action's undo.
        committer: Name of the action's committer.
        unit: Unit in which the call was made.
        ended: Units that have ended and handed over what is open.
        update: Which update the unit handles.
        options: Options of the contract that are not default, by their short names.
        unwind: Ordinal of the unwind that an undo belongs to.
        trigger: What started that unwind.
        cause: Type of the error that started it.
        hands_over: Number of the child that takes over a part of the unwind.
        origin: Id of the workflow whose history holds the entry, if that is another one.
        label: What reports call the unit that is unwound.
        kept: Keys of the irreversible actions that the unwind answers for.
        abandons: Whether a cancel of the call does not wait for it to settle.
        undoes_action: Name of the action that an undo undoes.
        link: The span of that action, as a W3C ``traceparent``.
    """

    action_key: str | None = None
    committer_key: str | None = None
    undoes: str | None = None
    explicit: bool = False
    own_key: str | None = None
    undo: str | None = None
    committer: str | None = None
    unit: UnitPath = ()
    ended: tuple[UnitPath, ...] = ()
    update: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    unwind: int | None = None
    trigger: str | None = None
    cause: str | None = None
    hands_over: int | None = None
    origin: str | None = None
    label: str | None = None
    kept: tuple[str, ...] = ()
    abandons: bool = False
    undoes_action: str | None = None
    link: str | None = None

    @property
    def role(self) -> Role:
        """The role that an activity has when it asks for its idempotency key."""
        if self.undoes is not None:
            return "undo"
        return "action" if self.action_key is not None else "committer"

    @property
    def key(self) -> str:
        """The key that the call goes by: for an undo, the key of what it undoes."""
        return self.undoes or self.own_key or self.action_key or self.committer_key or ""


def encode(record: CallRecord) -> bytes:
    """Write a record as compact JSON."""
    fields: dict[str, Any] = {
        "a": record.action_key,
        "s": record.committer_key,
        "x" if record.explicit else "z": record.undoes,
        "n": record.own_key,
        "u": record.undo,
        "c": record.committer,
        "p": path_text(record.unit) or None,
        "f": [path_text(path) for path in record.ended] or None,
        "h": record.update,
        **record.options,
        "w": record.unwind,
        "t": record.trigger,
        "e": record.cause,
        "d": record.hands_over,
        "o": record.origin,
        "l": record.label,
        "k": list(record.kept) or None,
        "b": 1 if record.abandons else None,
        "m": record.undoes_action,
        "y": record.link,
    }
    return _written(fields).encode()


@dataclass(frozen=True, slots=True)
class ActionTemplate:
    """What the records of one contract's executions have in common, written once.

    For a call that is an action and nothing else it writes what `encode` writes.
    """

    names: str
    options: str

    @classmethod
    def of(cls, contract: Contract) -> Self:
        """Write what is known before any call."""
        names = _written({"u": contract.undo, "c": contract.committer})
        return cls(_continued(names), _continued(_written(options_of(contract))))

    def fill(self, key: str, unit: UnitPath) -> bytes:
        """Write the record of one execution. Keys need no escaping."""
        path = f',"p":"{path_text(unit)}"' if unit else ""
        return f'{{"a":"{key}"{self.names}{path}{self.options}}}'.encode()


_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def _written(fields: Mapping[str, Any]) -> str:
    return _JSON.encode({name: value for name, value in fields.items() if value is not None})


def _continued(record: str) -> str:
    fields = record[1:-1]
    return f",{fields}" if fields else ""


def decode(data: bytes) -> CallRecord:
    """Read a record; fields that this version does not know are passed over.

    Raises:
        RecordError: It is not a record, or of a version that this code cannot read.
    """
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise RecordError("the compensation header is not JSON") from err
    if not isinstance(fields, dict):
        raise RecordError("the compensation header is not a JSON object")
    if fields.get("v", 1) != 1:
        raise RecordError(f"compensation header of version {fields['v']!r}; this code reads 1")
    try:
        record = _record(fields)
    except TypeError as err:
        raise RecordError(f"the compensation header has a field of another type: {err}") from err
    if "" in (record.action_key, record.committer_key) or not (record.key or record.hands_over):
        raise RecordError("the compensation header names no key")
    if record.key and record.hands_over is not None:
        raise RecordError("the compensation header names a key, and is that of a hand-over")
    return record


def _record(fields: Mapping[str, Any]) -> CallRecord:
    explicit = fields.get("x") is not None
    return CallRecord(
        action_key=_text(fields.get("a")),
        committer_key=_text(fields.get("s")),
        undoes=_text(fields.get("x" if explicit else "z")),
        explicit=explicit,
        own_key=_text(fields.get("n")),
        undo=_text(fields.get("u")),
        committer=_text(fields.get("c")),
        unit=_unit(_text(fields.get("p"))),
        ended=tuple(_unit(each) for each in _texts(fields.get("f") or ())),
        update=_text(fields.get("h")),
        options=_options(fields),
        unwind=_number(fields.get("w")),
        trigger=_text(fields.get("t")),
        cause=_text(fields.get("e")),
        hands_over=_number(fields.get("d")),
        origin=_text(fields.get("o")),
        label=_text(fields.get("l")),
        kept=_texts(fields.get("k") or ()),
        abandons=bool(fields.get("b")),
        undoes_action=_text(fields.get("m")),
        link=_text(fields.get("y")),
    )


def _options(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options that are there; those that this version does not know are kept."""
    found = {n: value for n, value in fields.items() if len(n) == 1 and n in ascii_uppercase}
    for name, read in _OPTIONS.items():
        if found.get(name) is not None:
            read(found[name])
    return found


def update_digest(update_id: str) -> str:
    """Tell updates of one run apart in few bytes."""
    return base64.b64encode(hashlib.sha256(update_id.encode()).digest()[:9]).decode()


def options_of(contract: Contract) -> dict[str, Any]:
    """List the options of a contract that are not default, by their short names.

    ``I`` undo input, ``D`` undone when in doubt, ``R`` irreversible, ``N`` errors without effect,
    ``Q`` task queue of the undo, ``S``, ``C`` and ``H`` its start-to-close, schedule-to-close and
    heartbeat timeouts in seconds, ``M`` its maximum attempts.
    """
    undo = contract.undo_options
    retry = undo.get("retry_policy")
    found: dict[str, Any] = {
        "I": None if contract.undo_input == "result" else contract.undo_input,
        "D": 1 if contract.on_unknown == "undo" else None,
        "R": 1 if contract.irreversible else None,
        "N": list(contract.no_effect_errors) or None,
        "Q": undo.get("task_queue"),
        "S": _seconds(undo.get("start_to_close_timeout")),
        "C": _seconds(undo.get("schedule_to_close_timeout")),
        "H": _seconds(undo.get("heartbeat_timeout")),
        "M": getattr(retry, "maximum_attempts", None) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _seconds(value: timedelta | None) -> float | None:
    if value is None:
        return None
    seconds = value.total_seconds()
    return int(seconds) if seconds == int(seconds) else seconds


def _unit(path: str | None) -> UnitPath:
    return parse_path(path) if path else ()
