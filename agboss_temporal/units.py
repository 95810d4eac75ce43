"""The unit in which workflow code is executing, found through its context."""

from __future__ import annotations

import itertools
from contextvars import ContextVar, Token
from typing import Final

from agboss_temporal.core.scope import UnitPath, path_text


class Unit:
    """A scope with its own part of the ledger: the run, or something that was opened inside it.

    Attributes:
        path: Its place.
        ended: Whether what belongs to it has been undone, sealed or handed over.
    """

    __slots__ = ("_name", "_ordinals", "_parent", "ended", "path")

    def __init__(self, parent: Unit | None = None, name: str | None = None) -> None:
        self._parent = parent
        self._name = name
        self._ordinals = itertools.count(1)
        self.path: UnitPath = () if parent is None else (*parent.path, next(parent._ordinals))
        self.ended = False

    def open(self, name: str | None = None) -> Unit:
        """Open a unit inside it."""
        return Unit(self, name)

    def still_open(self) -> Unit:
        """Return it, or the nearest enclosing unit if it has ended."""
        unit = self
        while unit.ended and unit._parent is not None:
            unit = unit._parent
        return unit

    @property
    def label(self) -> str | None:
        """Its name, else its path; ``None`` for the run."""
        return self._name or path_text(self.path) or None


_current: Final[ContextVar[Unit]] = ContextVar("agboss_temporal_unit")


def current(root: Unit) -> Unit:
    """Return the innermost open unit of the code that is executing, in the run of ``root``."""
    return _current.get(root).still_open()


def enter(unit: Unit) -> Token[Unit]:
    """Make a unit the current one of this task and of those that it starts."""
    return _current.set(unit)


def leave(token: Token[Unit]) -> None:
    """Take back one `enter`, in the same task."""
    _current.reset(token)
