"""What the reference knows of a run: its units, its calls, and what became of their effects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

UNKNOWN_UNDONE = ("unknown", "unknown_context", "bill")
"""Kinds whose undo is run when nobody knows whether they took effect."""


class Err(Exception):
    """A failure that workflow code sees."""

    def __init__(self, kind: str, *, cancelled: bool = False) -> None:
        super().__init__(kind)
        self.kind = kind
        self.cancelled = cancelled


class Undetermined(Exception):
    """The program leaves something open that neither it nor the contract decides.

    Wherever it is raised, also in a task that nobody awaits, its thread remembers it.
    """

    seen = threading.local()

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.seen.why = why


@dataclass(eq=False)
class Scope:
    """A unit: the run, or a part of it."""

    parent: Scope | None = None
    left: bool = False

    @property
    def standing(self) -> Scope:
        """The nearest unit that is still open."""
        here = self
        while here.left and here.parent is not None:
            here = here.parent
        return here

    def inside(self, outer: Scope) -> bool:
        """Whether it is another unit, or lies inside it."""
        here: Scope | None = self
        while here is not None:
            if here is outer:
                return True
            here = here.parent
        return False


@dataclass(eq=False)
class Entry:
    """One execution of an action."""

    kind: str
    label: str
    undo: str
    ordinal: int
    key: int
    scope: Scope
    state: str = "running"
    doubt: str = ""
    sequence: int = 0
    touched: bool = False
    committed: bool = False
    told: Scope | None = None

    @property
    def name(self) -> str:
        return "DeclaredChild" if self.kind == "child" else f"do_{self.kind}"

    @property
    def committer(self) -> str | None:
        return self.kind if self.kind in ("ship", "bill") else None

    @property
    def undo_name(self) -> str:
        """What its undo is called."""
        if self.kind in ("result", "ship", "child"):
            return "undo_result"
        return {"unknown": "undo_args", "bill": "undo_args"}.get(
            self.kind, f"undo_{self.kind.removeprefix('unknown_')}"
        )

    def sealed_by(self, committer: str | None, scope: Scope) -> bool:
        """Whether it names a committer that was started in a unit related to its own."""
        told = self.told or self.scope
        return self.committer == committer and (told.inside(scope) or scope.inside(told))

    @property
    def stands(self) -> bool:
        """Whether an unwind has to answer for it."""
        return self.state == "open" or (self.state == "in_doubt" and self.kind in UNKNOWN_UNDONE)


@dataclass(eq=False)
class Call:
    """A call in flight."""

    label: str
    scope: Scope
    effect: str
    outcome: str = "ok"
    on_cancel: str = "ignore"
    entry: Entry | None = None
    commits: str | None = None
    reverts: Entry | None = None
    is_revert: bool = False
    named: bool = True
    child: Callable[[], None] | None = None
    attempts: int = 1
    flaky: bool = False
    sent: bool = False
    cancelling: bool = False
    withdrawn: bool = False
    done: asyncio.Future[None] = field(default_factory=asyncio.Future)
    error: Err | None = None
    started: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.scope


@dataclass(eq=False)
class Turn:
    """The turn of an unwind: after its rivals have ended."""

    scope: Scope
    rivals: list[asyncio.Future[None]]
    ended: asyncio.Future[None] = field(default_factory=asyncio.Future)


@dataclass
class Planned:
    """An entry in the plan of an unwind."""

    entry: Entry
    outcome: str
    verdict: str = ""


class Ledger:
    """The entries of a run."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.planned: list[Planned] = []
        self.committers_in_doubt: list[tuple[str, str]] = []
        self._settled = 0

    def complete(self, entry: Entry) -> None:
        self._settled += 1
        entry.sequence, entry.state = self._settled, "open"

    def doubt(self, entry: Entry, kind: str) -> None:
        self._settled += 1
        entry.sequence, entry.state, entry.doubt = self._settled, "in_doubt", kind

    def tell(self) -> None:
        """A committer starts: its record says which units have ended by then, and no later ones."""
        for entry in self.entries:
            entry.told = entry.scope

    def seal(self, committer: str, scope: Scope) -> None:
        """A committer has completed; it seals what its unit is related to, as history has it."""
        for entry in self.entries:
            if not entry.sealed_by(committer, scope):
                continue
            if entry.state in ("open", "in_doubt"):
                entry.state = "sealed"
            entry.committed |= entry.state == "undoing"

    def reopen(self, entry: Entry) -> None:
        """The explicit undo of an entry has failed."""
        entry.state = "in_doubt" if entry.doubt else "open"
        if entry.committed:
            entry.state = "sealed"

    def finish(self, scope: Scope | None = None, *, keep_uncommitted: bool = False) -> None:
        """What is open, in a unit or everywhere, is past the point of no return."""
        for entry in self.entries:
            kept = keep_uncommitted and entry.committer is not None
            if entry.state == "open" and (scope is None or entry.scope is scope) and not kept:
                entry.state = "sealed"

    def plan(self, wanted: Callable[[Entry], bool]) -> list[Planned]:
        """In doubt first, newest started first; then completed ones, newest completed first."""
        found = [e for e in self.entries if e.stands and wanted(e)]
        if all(entry.kind == "final" for entry in found):
            return []
        found.sort(key=lambda e: (not e.doubt, -e.ordinal if e.doubt else -e.sequence))
        return [Planned(e, "unknown" if e.doubt else "completed") for e in found]

    @property
    def uncommitted(self) -> list[Entry]:
        return [e for e in self.entries if e.state == "open" and e.committer]

    @property
    def leftovers(self) -> bool:
        """Whether some unwind left an effect behind."""
        return left_behind(self.planned)

    @property
    def status(self) -> str:
        """The report's status."""
        undone = sum(p.verdict == "undone" for p in self.planned)
        if not self.planned:
            return "none"
        if undone == len(self.planned):
            return "completed"
        return "partial" if undone else "failed"


def left_behind(planned: list[Planned]) -> bool:
    """Whether an effect of a plan stays."""
    return any(p.verdict not in ("undone", "irreversible") for p in planned)


async def protected(work: Awaitable[object]) -> bool:
    """Do work to its end; tell whether a cancel came meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    return cancelled
