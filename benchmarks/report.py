"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from benchmarks.load import PATHS, Path
from benchmarks.results import Results
from benchmarks.stats import Spread, ratios
from benchmarks.variants import BY_HAND, DECLARED, PLAIN, VARIANTS, Variant


def markdown(results: Results) -> str:
    """Write all tables."""
    sections = [
        _environment(results),
        "### Asked and found\n\n" + _table(("asked", "found", "holds"), _checks(results)),
        "### Orders\n\n" + _orders_intro(results) + _table(_ORDERS, _orders(results)),
        "### Ratios\n\n" + _table(_RATIOS, _ratios(results)),
        "### Replay\n\n" + _table(_REPLAY, _replay(results)),
        "### Bytes that a record adds\n\n" + _table(("named call", "bytes"), _bytes(results)),
        "### Parts by themselves\n\n" + _table(("part", "µs per action"), _parts(results)),
    ]
    return "\n\n".join(sections) + "\n"


_ORDERS: Final = (
    "path",
    "variant",
    "runs/s",
    "worker CPU ms/run",
    "events",
    "workflow tasks",
    "history bytes",
)
_RATIOS: Final = ("path", "declared to", "throughput", "worker CPU", "worker CPU of the best")
_REPLAY: Final = (
    "actions",
    "no undo: ms",
    "declared: ms",
    "ratio",
    "ratio of the best",
    "added µs per action",
    "of the best",
)

_COMPARED: Final[tuple[tuple[Path, Variant], ...]] = (
    ("success", PLAIN),
    ("success", BY_HAND),
    ("failure", BY_HAND),
)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _environment(results: Results) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in results.environment.items())


def _checks(results: Results) -> Iterator[Sequence[str]]:
    for check in results.checks():
        failed = "**no**" if check.exact else "no (measured)"
        yield check.what, check.found, "yes" if check.holds else failed


def _orders_intro(results: Results) -> str:
    plan = results.plan
    return (
        f"Medians of {plan.repetitions} repetitions of {plan.runs} runs, {plan.concurrency} at "
        "once (least … greatest).\n\n"
    )


def _orders(results: Results) -> Iterator[Sequence[str]]:
    for path in PATHS:
        for variant in VARIANTS:
            trace = results.typical(variant, path)
            yield (
                path,
                variant.name,
                Spread.of(results.throughput(variant, path)).text(1),
                Spread.of(results.cpu(variant, path)).text(1),
                str(len(trace.events)),
                str(trace.workflow_tasks),
                str(trace.size),
            )


def _ratios(results: Results) -> Iterator[Sequence[str]]:
    for path, other in _COMPARED:
        cpu, others = results.cpu(DECLARED, path), results.cpu(other, path)
        throughput = ratios(results.throughput(DECLARED, path), results.throughput(other, path))
        best = min(cpu) / min(others)
        row = (throughput.text(2), ratios(cpu, others).text(2), f"{best:.2f}")
        yield (path, other.name, *row)


def _replay(results: Results) -> Iterator[Sequence[str]]:
    for replays in results.replays:
        yield (
            f"{replays.actions} {replays.batching}",
            Spread.of(replays.plain_ms).text(0),
            Spread.of(replays.declared_ms).text(0),
            replays.ratio.text(3),
            f"{replays.best:.3f}",
            replays.added_us.text(0),
            f"{replays.best_added_us:.0f}",
        )


def _bytes(results: Results) -> Iterator[Sequence[str]]:
    for name, added in results.call_bytes().items():
        yield f"`{name}`", str(added)
    yield "`pack_parcel`, whose contract has options", str(results.option_bytes())


def _parts(results: Results) -> Iterator[Sequence[str]]:
    for part in results.parts:
        yield part.name, f"{part.us:.1f}"
