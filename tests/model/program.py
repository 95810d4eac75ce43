"""Workflow programs as data: what they do, how the world answers, what arrives from outside.

A program is pure: the interpreter workflow runs it, the reference computes from it alone what must
come of it. Every node has a place, such as ``m.1a.0``: its index in its body, a letter for a
branch, ``x`` for what handles an error, ``@2`` for a turn of a loop. ``g1`` stands before the
places of a run that was continued as new, ``h0`` before those of the first handler that is called,
a child's own place and ``/`` before a child's. A place names one execution, so it is its label in
the outside world.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, TypeAlias

RESULT_KINDS: Final = ("result", "ship")
KINDS: Final = (
    *RESULT_KINDS,
    "args",
    "context",
    "nothing",
    "unknown",
    "unknown_context",
    "bill",
    "final",
)
"""Contracts, by the name of their action. ``ship`` and ``bill`` name the committer of that name,
``unknown``, ``unknown_context`` and ``bill`` undo what is in doubt, ``final`` is irreversible."""

COMMITTERS: Final = ("ship", "bill")
OUTCOMES: Final = (
    "ok",
    "declined",
    "raise_before",
    "raise_after",
    "lost_before",
    "lost_after",
    "unstarted",
)
"""What an action does: it succeeds; fails with an error that proves that it did nothing; raises
before or after its effect; times out before or after it; finds no worker."""

ON_CANCEL: Final = ("ignore", "obey_before", "obey_after")
UNDOS: Final = ("ok", "flaky", "fails", "fails_after")


@dataclass(frozen=True)
class Act:
    """A call of an action."""

    kind: str = "result"
    outcome: str = "ok"
    on_cancel: str = "ignore"
    undo: str = "ok"
    touch: bool = False


@dataclass(frozen=True)
class Commit:
    """A call of a committer."""

    name: str = "ship"
    outcome: str = "ok"
    on_cancel: str = "ignore"


@dataclass(frozen=True)
class Note:
    """A call of an activity that no contract names."""


@dataclass(frozen=True)
class Raise:
    """A failure of the workflow's own code."""

    error: str = "Stop"


@dataclass(frozen=True)
class Hang:
    """Waits for ever, at nothing that a contract names."""


@dataclass(frozen=True)
class Revert:
    """An explicit call of the undo of what the run's code was given ``back`` results ago."""

    back: int = 0


@dataclass(frozen=True)
class Compensate:
    """A call of ``compensate``, of everything or of one kind."""

    kind: str | None = None


@dataclass(frozen=True)
class Try:
    """Any ``Exception`` of the body is handled; a cancel is not."""

    body: tuple[Node, ...]
    handler: tuple[Node, ...] = ()


@dataclass(frozen=True)
class If:
    """Takes the first way when the code holds an even number of results, else the second."""

    then: tuple[Node, ...]
    other: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Loop:
    """A body, several times."""

    times: int
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Fan:
    """Branches side by side: ``gather``, a ``group`` (TaskGroup) or a ``join``."""

    how: str
    branches: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class Unit:
    """``async with unit(seal=…)``."""

    body: tuple[Node, ...]
    seal: bool = False


@dataclass(frozen=True)
class Limit:
    """``asyncio.timeout``; an event of the program says when it runs out."""

    body: tuple[Node, ...]


@dataclass(frozen=True)
class Child:
    """A child workflow that is compensated; ``declared``, it is an action too."""

    body: tuple[Node, ...]
    declared: bool = False
    undo: str = "ok"


Node: TypeAlias = (
    Act
    | Commit
    | Note
    | Raise
    | Hang
    | Revert
    | Compensate
    | Try
    | If
    | Loop
    | Fan
    | Unit
    | Limit
    | Child
)
NODES: Final = (
    *(Act, Commit, Note, Raise, Hang, Revert, Compensate),
    *(Try, If, Loop, Fan, Unit, Limit, Child),
)


@dataclass(frozen=True)
class Event:
    """What arrives from outside when ``at`` moves have been made.

    Kinds: ``cancel``; ``expire`` (the ``which``-th open time limit runs out); ``signal`` and
    ``update`` (the ``which``-th handler is called). With ``together`` a cancel lands in the same
    workflow task as the completion that the move picks.
    """

    kind: str
    at: int = 0
    which: int = 0
    together: bool = False


@dataclass(frozen=True)
class Program:
    """A run and what happens to it.

    Attributes:
        main: What the run method does.
        further: What each run that it continues as does; none, and it returns.
        handlers: What a signal or an update does.
        choices: Which of the activities in flight is let go next, move by move, modulo their count.
        events: What arrives from outside.
        policy: ``default``, ``allow`` (uncommitted actions), ``stop`` (after an undo that gave
            up), ``failures`` (a cancel is no trigger).
    """

    main: tuple[Node, ...] = ()
    further: tuple[tuple[Node, ...], ...] = ()
    handlers: tuple[tuple[Node, ...], ...] = ()
    choices: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()
    policy: str = "default"


POLICIES: Final = ("default", "allow", "stop", "failures")

_BY_NAME: Final[dict[str, type[Any]]] = {cls.__name__: cls for cls in (*NODES, Event, Program)}


def dump(value: Any) -> Any:
    """Write a program, or a part of it, as JSON values."""
    if isinstance(value, tuple):
        return [dump(each) for each in value]
    if type(value).__name__ not in _BY_NAME:
        return value
    found = {f.name: dump(getattr(value, f.name)) for f in fields(value)}
    return {"node": type(value).__name__, **found}


def load(value: Any) -> Any:
    """Read what `dump` wrote."""
    if isinstance(value, list):
        return tuple(load(each) for each in value)
    if not isinstance(value, dict):
        return value
    given = {name: load(each) for name, each in value.items() if name != "node"}
    return _BY_NAME[value["node"]](**given)


def bodies(node: Any) -> Iterator[tuple[Node, ...]]:
    """The bodies of a node."""
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name == "branches":
            yield from value
        elif field.name in ("body", "handler", "then", "other"):
            yield value


def nodes(body: Sequence[Node]) -> Iterator[Node]:
    """All nodes of a body, at any depth."""
    for node in body:
        yield node
        for inner in bodies(node):
            yield from nodes(inner)


def everything(program: Program) -> Iterator[Node]:
    """All nodes of a program."""
    for body in (program.main, *program.further, *program.handlers):
        yield from nodes(body)


def text(value: Any) -> str:
    """Write a program as the Python that makes it, without what is default."""
    if isinstance(value, tuple):
        inside = ", ".join(text(each) for each in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value).__name__ not in _BY_NAME:
        return repr(value)
    given = {f.name: getattr(value, f.name) for f in fields(value)}
    told = [
        f"{f.name}={text(given[f.name])}"
        for f in fields(value)
        if f.default is MISSING or given[f.name] != f.default
    ]
    return f"{type(value).__name__}({', '.join(told)})"
