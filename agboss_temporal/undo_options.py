"""The options of an undo's call: their defaults, their values, and that they bound it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from temporalio.api.common.v1 import RetryPolicy as RetryPolicyRecord
from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import VersioningIntent


class FrozenOptions(Mapping[str, Any]):
    """Options that nobody can change. Equal to any mapping that holds the same."""

    __slots__ = ("_held",)

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._held = dict(options)

    def __getitem__(self, name: str) -> Any:
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return repr(self._held)


DEFAULT_UNDO_OPTIONS: Final[Mapping[str, Any]] = FrozenOptions(
    {
        "start_to_close_timeout": timedelta(seconds=30),
        "schedule_to_close_timeout": timedelta(hours=1),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1)
        ),
    }
)
"""What bounds an undo where nothing else is said: 30 s an attempt, any number of attempts, given
up after an hour, which also bounds the wait for a worker."""

_BOUNDS: Final = ("start_to_close_timeout", "schedule_to_close_timeout")

_INHERITED: Final = frozenset({"task_queue", "priority"})
"""What an undo has from its action where no option says otherwise."""

_TYPES: Final[Mapping[str, type[Any]]] = {
    "task_queue": str,
    "schedule_to_close_timeout": timedelta,
    "schedule_to_start_timeout": timedelta,
    "start_to_close_timeout": timedelta,
    "heartbeat_timeout": timedelta,
    "retry_policy": RetryPolicy,
    "versioning_intent": VersioningIntent,
    "priority": Priority,
}


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge options over the defaults, the last winning.

    A queue or a priority that is ``None`` says nothing. The server refuses a call that neither
    timeout bounds, and two layers may each take one away; then the default schedule-to-close holds.
    """
    options = dict(DEFAULT_UNDO_OPTIONS)
    for layer in layers:
        for name, value in layer.items():
            if value is not None or name not in _INHERITED:
                options[name] = value
    if _unbounded(options):
        options[_BOUNDS[1]] = DEFAULT_UNDO_OPTIONS[_BOUNDS[1]]
    return options


def wrong_values(options: Mapping[str, Any]) -> list[str]:
    """Say which values the unwind could not use. Unknown names are not looked at."""
    found = [
        f"undo_options has {name}={value!r}; {problem}"
        for name, value in options.items()
        if name in _TYPES and (problem := _problem(name, value)) is not None
    ]
    if _unbounded({**DEFAULT_UNDO_OPTIONS, **options}):
        found.append(f"undo_options sets both {' and '.join(_BOUNDS)} to None; one must bound it")
    return found


def to_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Write options as plain JSON values, times in seconds."""
    return {name: _written(value) for name, value in options.items()}


def from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Read options that `to_json` wrote."""
    return {name: _read(_TYPES[name], value) for name, value in data.items() if name in _TYPES}


def _written(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, VersioningIntent):
        return value.name
    if isinstance(value, (RetryPolicy, Priority)):
        return {f.name: _written(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value


def _read(kind: type[Any], value: Any) -> Any:
    if value is None or kind is str:
        return value
    if kind is timedelta:
        return timedelta(seconds=value)
    if kind is VersioningIntent:
        return VersioningIntent[value]
    times = ("initial_interval", "maximum_interval")
    return kind(**{n: _read(timedelta, each) if n in times else each for n, each in value.items()})


def _unbounded(options: Mapping[str, Any]) -> bool:
    return all(options.get(name) is None for name in _BOUNDS)


def _problem(name: str, value: Any) -> str | None:
    kind = _TYPES[name]
    if value is None:
        return None
    if not isinstance(value, kind):
        return f"it must be a {kind.__name__} or None"
    if isinstance(value, timedelta) and value <= timedelta(0):
        return "it must be longer than nothing"
    if value == "":
        return "it must be the name of a queue"
    if isinstance(value, RetryPolicy):
        try:
            value.apply_to_proto(RetryPolicyRecord())
        except (ValueError, TypeError, AttributeError) as err:
            return str(err)
    return None
