"""What an order is going to do, made from its seed alone."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

ACTIONS: Final = ("take_stock", "take_stock", "debit", "debit", "pack", "book")
SAFE: Final = ("take_stock", "debit")
"""Actions with unlimited attempts: the death of a worker never settles their outcome."""

COMMITTED: Final = "take_stock"
"""The action that names a committer; an order that never commits it fails."""


@dataclass(frozen=True)
class Do:
    """One call of an action.

    Attributes:
        action: Name of the activity.
        item: Tells the order's calls apart.
        before: Seconds from the attempt's start to the effect.
        after: Seconds from the effect to the attempt's end.
        flaky: Where the first attempt breaks off, retryably: ``before`` or ``after`` the effect.
        ends: How every attempt ends instead of a result: ``refused`` before the effect, which the
            contract knows, or ``broken`` after it.
    """

    action: str
    item: str
    before: float
    after: float
    flaky: str = ""
    ends: str = ""


@dataclass(frozen=True)
class Step:
    """One step of an order: the name of the workflow's method, and what it calls."""

    kind: str
    calls: tuple[Do, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Plan:
    """An order.

    Attributes:
        seed: What it was made from.
        steps: What it does, one after another.
        fails: Whether a step of it fails for good.
        cancel_after: When it is cancelled, in seconds from its start.
        cancel_at_undo: Whether it is cancelled as soon as an undo is attempted.
    """

    seed: int
    steps: tuple[Step, ...]
    fails: bool
    cancel_after: float | None = None
    cancel_at_undo: bool = False

    def kept(self) -> set[str]:
        """Items whose effects are there at the end if nothing fails; tolerated ones left out."""
        open_items: list[Do] = []
        kept: list[Do] = []
        for step in self.steps:
            if step.kind == "give_back":
                open_items.clear()
            elif step.kind == "commit":
                kept += [do for do in open_items if do.action == COMMITTED]
                open_items = [do for do in open_items if do.action != COMMITTED]
            elif step.kind != "regret":
                open_items += step.calls
        kept += [do for do in open_items if do.action != COMMITTED]
        return {do.item for do in kept} - self.tolerated()

    def tolerated(self) -> set[str]:
        """Items of calls whose failure the order takes lightly."""
        return {do.item for step in self.steps if step.kind == "tolerate" for do in step.calls}


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._count = 0

    def do(self, actions: tuple[str, ...] = ACTIONS, *, ends: str = "") -> Do:
        self._count += 1
        draw = self.random.random()
        return Do(
            action=self.random.choice(actions),
            item=f"item-{self._count}",
            before=round(self.random.uniform(0, 0.25), 3),
            after=round(self.random.uniform(0, 0.25), 3),
            flaky="" if ends else "before" if draw < 0.05 else "after" if draw < 0.15 else "",
            ends=ends,
        )

    def some(self, low: int, high: int) -> tuple[Do, ...]:
        return tuple(self.do() for _ in range(self.random.randint(low, high)))

    def step(self) -> Step:
        kinds = ["one", "gather", "group", "branches", "loop", "pause", "tolerate", "regret"]
        weights = [4, 3, 2, 2, 2, 1, 1, 1]
        kind = self.random.choices(kinds, weights)[0]
        if kind == "pause":
            return Step(kind, seconds=round(self.random.uniform(0.05, 0.4), 3))
        if kind == "regret":
            return Step(kind, (self.do(SAFE),))
        return Step(kind, self.some(*{"one": (1, 1), "tolerate": (1, 1)}.get(kind, (2, 4))))

    def failing(self) -> Step:
        kind = self.random.choice(["boom", "boom_beside", "boom_in_group", "refused", "broken"])
        if kind == "refused":
            return Step("one", (self.do(("debit",), ends="refused"),))
        if kind == "broken":
            return Step("gather", (*self.some(0, 2), self.do(ends="broken")))
        return Step(kind, () if kind == "boom" else self.some(1, 3))


def plan_of(seed: int) -> Plan:
    """Make the order of a seed."""
    maker = _Maker(seed)
    random = maker.random
    steps = [maker.step() for _ in range(random.randint(4, 6))]
    if random.random() < 0.4:
        steps.insert(0, Step("one", (maker.do((COMMITTED,)),)))
        steps.insert(random.randint(1, len(steps)), Step("commit"))
    if random.random() < 0.15:
        steps.insert(random.randint(1, len(steps)), Step("give_back"))
    fails = random.random() < 0.35
    if fails:
        steps.insert(random.randint(len(steps) // 2, len(steps)), maker.failing())
    if random.random() < 0.9:
        steps.append(Step("commit"))
    draw = random.random()
    if draw < 0.2:
        return Plan(seed, tuple(steps), fails, cancel_at_undo=True)
    cancel_after = round(random.uniform(0.1, 9), 2) if draw < 0.45 else None
    return Plan(seed, tuple(steps), fails, cancel_after)
