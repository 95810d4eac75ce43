"""Everything that one execution of the benchmark found, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.histories import Trace, Traces, added_bytes
from benchmarks.isolated import Part
from benchmarks.load import PATHS, Batch, Path
from benchmarks.replay import Replays
from benchmarks.stats import Spread, ratios
from benchmarks.variants import BY_HAND, DECLARED, PLAIN, Variant


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        runs: Orders in a batch.
        concurrency: Orders under way at once.
        repetitions: Batches of each variant and path.
        actions: Actions of a history that is replayed.
        rounds: Replays of each history.
        repeats: How often a part is timed by itself.
    """

    runs: int = 100
    concurrency: int = 50
    repetitions: int = 8
    actions: int = 1000
    rounds: int = 12
    repeats: int = 7


QUICK: Final = Plan(runs=15, concurrency=15, repetitions=2, actions=200, rounds=2, repeats=2)


SAME: Final = 0.97
"""From where on a throughput counts as the same: repetitions of one variant differ by more."""


@dataclass(frozen=True)
class Check:
    """One thing that is asked of the library.

    Attributes:
        what: What is asked.
        found: What was found.
        holds: Whether it is as asked.
        exact: Whether it is counted, so that it must hold; else it is measured, and is to be near.
    """

    what: str
    found: str
    holds: bool
    exact: bool


@dataclass(frozen=True)
class Results:
    """What was found."""

    environment: dict[str, str]
    plan: Plan
    batches: list[Batch]
    traces: Traces
    many: dict[str, Trace]
    options: tuple[Trace, Trace]
    replays: list[Replays]
    parts: list[Part]

    def throughput(self, variant: Variant, path: Path) -> list[float]:
        """List runs per second, by repetition."""
        return [b.runs_per_second for b in self._batches(variant, path)]

    def cpu(self, variant: Variant, path: Path) -> list[float]:
        """List worker CPU per run, by repetition."""
        return [b.cpu_ms for b in self._batches(variant, path)]

    def _batches(self, variant: Variant, path: Path) -> list[Batch]:
        found = [b for b in self.batches if (b.variant, b.path) == (variant.name, path)]
        return sorted(found, key=lambda b: b.repetition)

    def typical(self, variant: Variant, path: Path) -> Trace:
        """Return the trace of median size."""
        traces = sorted(self.traces[variant.name, path], key=lambda t: t.size)
        return traces[len(traces) // 2]

    def call_bytes(self) -> dict[str, int]:
        """Tell how many bytes each named call of an order is longer for being recorded."""
        most: dict[str, int] = {}
        pairs = zip(*(self.traces[v.name, "success"] for v in (PLAIN, DECLARED)), strict=True)
        for plain, declared in pairs:
            for name, added in added_bytes(plain, declared).items():
                most[name] = max(most.get(name, 0), added)
        return most

    def option_bytes(self) -> int:
        """Tell the same of the call whose contract has options."""
        return added_bytes(*self.options)["pack_parcel"]

    def checks(self) -> list[Check]:
        """Hold what was found against what is asked."""
        return [*_counted(self), *_measured(self)]

    def as_json(self) -> dict[str, Any]:
        """Return everything in the types of JSON."""
        return {
            "environment": self.environment,
            "plan": asdict(self.plan),
            "batches": [asdict(b) for b in self.batches],
            "histories": {
                f"{name}, {path}": asdict(traces[0]) for (name, path), traces in self.traces.items()
            },
            "added_bytes": {**self.call_bytes(), "pack_parcel": self.option_bytes()},
            "replays": [asdict(r) for r in self.replays],
            "parts": [asdict(p) for p in self.parts],
            "checks": [asdict(c) for c in self.checks()],
        }


def _counted(results: Results) -> Iterator[Check]:
    forward = _equal(
        [t.events for t in results.traces[PLAIN.name, "success"]],
        [t.events for t in results.traces[DECLARED.name, "success"]],
    )
    failing = _equal(
        [t.until_failure() for t in results.traces[PLAIN.name, "failure"]],
        [t.until_failure() for t in results.traces[DECLARED.name, "failure"]],
    )
    many = results.many[PLAIN.name].events == results.many[DECLARED.name].events
    same = "events, workflow tasks and order of commands those of no undo"
    yield Check(f"success: {same}", _yes(forward), forward, True)
    yield Check(f"failure, until it fails: {same}", _yes(failing), failing, True)
    yield Check(f"{results.plan.actions} actions: {same}", _yes(many), many, True)
    ours, theirs = (
        {len(t.events) for t in results.traces[v.name, "failure"]} for v in (DECLARED, BY_HAND)
    )
    more = {a - b for a in ours for b in theirs}
    found = ", ".join(map(str, sorted(more)))
    yield Check("failure: 2 events more than by hand", found, more == {2}, True)
    added = max(results.call_bytes().values())
    yield Check("at most 120 bytes more per named call", str(added), added <= 120, True)
    added = results.option_bytes()
    yield Check("at most 160 with options", str(added), added <= 160, True)


def _equal(some: list[tuple[str, ...]], others: list[tuple[str, ...]]) -> bool:
    return len({*some, *others}) == 1


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _measured(results: Results) -> Iterator[Check]:
    for path in PATHS:
        ratio = ratios(results.throughput(DECLARED, path), results.throughput(BY_HAND, path))
        holds = ratio.median >= SAME
        yield _near(f"{path}: throughput 1.0 of by hand (at least {SAME})", ratio, holds)
    for path in PATHS:
        ratio = ratios(results.cpu(DECLARED, path), results.cpu(BY_HAND, path))
        yield _near(f"{path}: worker CPU at most 1.05 of by hand", ratio, ratio.median <= 1.05)
    for replays in results.replays:
        what = f"replay {replays.batching}"
        ratio = replays.ratio
        yield _near(f"{what}: CPU at most 1.08 of no undo", ratio, ratio.median <= 1.08)
        added = replays.added_us
        holds = added.median <= 100
        yield Check(f"{what}: at most 100 µs more per action", added.text(0), holds, False)


def _near(what: str, ratio: Spread, holds: bool) -> Check:
    return Check(what, ratio.text(3), holds, False)
