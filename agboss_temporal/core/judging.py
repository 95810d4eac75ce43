"""Calls without a record, judged by what their reader declares: runs from before the plugin.

The rules are those of an explicit undo in a workflow, but for the identity of objects, which no
history shows: the undo closes the action whose recorded payload it was given, else the only open
one with that undo; if several remain it closes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agboss_temporal.core.entry import Entry, State

Print: TypeAlias = tuple[bytes, ...]

_OPEN = (State.OPEN, State.IN_DOUBT)


@dataclass(slots=True, eq=False)
class Judged:
    """An action without a record.

    Attributes:
        entry: Its entry.
        position: Its place among the calls of the run.
        args: What it was given, without codec.
        result: What it returned, without codec.
    """

    entry: Entry
    position: int
    args: Sequence[Any] = ()
    result: Any = None

    @property
    def gives(self) -> Print:
        """What its undo is given, as far as that is recorded."""
        if self.entry.contract.undo_input == "args":
            return print_of(self.args)
        if self.entry.contract.undo_input == "result" and self.result is not None:
            return print_of([self.result])
        return ()


@dataclass(slots=True)
class Docket:
    """The actions without a record, by their undos."""

    by_undo: dict[str | None, list[Judged]] = field(default_factory=dict)
    by_print: dict[tuple[str | None, Print], list[Judged]] = field(default_factory=dict)

    def begin(self, judged: Judged) -> None:
        """Enter an action that was started."""
        self.by_undo.setdefault(judged.entry.contract.undo, []).append(judged)

    def settled(self, judged: Judged) -> None:
        """Note what its undo will be given; only now is that known."""
        if judged.gives:
            key = (judged.entry.contract.undo, judged.gives)
            self.by_print.setdefault(key, []).append(judged)

    def closed_by(self, undo: str, args: Sequence[Any]) -> Judged | None:
        """Find what a call of an undo closes that has no record either."""
        given = print_of(args)
        equal = self.by_print.get((undo, given), []) if given else []
        standing = [j for j in equal if j.entry.state in _OPEN]
        if len(standing) == 1:
            return standing[0]
        if equal and not standing:
            return None
        others = self.standing(undo)
        return others[0] if len(others) == 1 else None

    def undone_by(self, undo: str, args: Sequence[Any], position: int) -> Judged | None:
        """Find what an undo undoes that a later unwind has recorded.

        Args:
            undo: Name of the undo.
            args: What it is given, without codec.
            position: Place of the action among the calls of the run, by its key. It counts calls
                that history may not show, so it only chooses between equals.
        """
        given = print_of(args)
        equal = self.by_print.get((undo, given), []) if given else []
        standing = [j for j in equal if j.entry.state in _OPEN]
        if not standing:
            standing = [j for j in self.standing(undo) if not j.gives]
        placed = [j for j in standing if j.position == position]
        if placed or len(standing) == 1 or (standing and given and equal):
            return (placed or standing)[-1]
        return None

    def standing(self, undo: str) -> list[Judged]:
        """List the judged executions that an undo may still close."""
        return [j for j in self.by_undo.get(undo, ()) if j.entry.state in _OPEN]


def print_of(payloads: Sequence[Any]) -> Print:
    """Tell payloads apart."""
    return tuple(p.SerializeToString(deterministic=True) for p in payloads)
