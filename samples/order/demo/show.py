"""What the demo prints, and how."""

from __future__ import annotations

import os
import sys
from typing import Final

from agboss_temporal import CompensationReport
from samples.order.books import Snapshot
from samples.order.demo.trail import Step

_COLOURS: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_COLOURED: Final = sys.stdout.isatty() and "NO_COLOR" not in os.environ
_TONES: Final = {"done": "green", "COMPLETED": "green", "requested": "yellow"}


def paint(text: str, colour: str) -> str:
    """Colour a text, if it goes to a terminal."""
    return f"\033[{_COLOURS[colour]}m{text}\033[0m" if _COLOURED else text


def say(text: str = "") -> None:
    """Print a line now, even into a pipe."""
    print(text, flush=True)


def title(text: str) -> None:
    """Print the heading of a story."""
    say()
    say(paint(text, "bold"))


def aside(text: str) -> None:
    """Print what happens outside Temporal, which no history tells."""
    say(paint(f"    ... {text}", "yellow"))


def step(step: Step) -> None:
    """Print a step of a run."""
    outcome = paint(step.outcome.ljust(10), _TONES.get(step.outcome, "red"))
    say(f"    {step.name:<28}{outcome}{step.remark}".rstrip())


def report(report: CompensationReport) -> None:
    """Print what the library says of a run."""
    verdicts = [f"{e.action} {e.verdict}" for e in report.entries]
    verdicts += [f"{d.name} in doubt ({d.kind})" for d in report.in_doubt]
    say()
    say(f"    query agboss.compensation   {report.status} ({report.trigger})")
    for each in verdicts:
        say(f"    {'':<28}{each}")


def command(line: str, said: str, code: int) -> None:
    """Print a command, what it says, and how it ends."""
    say()
    say(f"    $ {paint(line, 'bold')}")
    for each in said.rstrip().splitlines():
        say(f"    {each}".rstrip())
    say(paint(f"    exit code {code}", "dim"))


def worlds(sku: str, before: Snapshot, after: Snapshot) -> None:
    """Print the world before and after a story, of the stock only one article."""
    say()
    say(paint(f"    {'the outside world':<28}{'before':>8}{'after':>10}", "dim"))
    row(f"{sku}s on the shelf", str(before.stock[sku]), str(after.stock[sku]))
    row("money taken", f"{before.taken_cents / 100:.2f}", f"{after.taken_cents / 100:.2f}")
    row("parcels sent", str(before.shipments), str(after.shipments))


def row(name: str, before: str, after: str) -> None:
    """Print one line of the table."""
    say(f"    {name:<28}{before:>8}{after:>10}")


def verdict(faults: list[str], summary: str) -> None:
    """Print whether the world is clean."""
    say()
    if not faults:
        say(paint(f"CLEAN: {summary}.", "green"))
        return
    say(paint("NOT CLEAN:", "red"))
    for each in faults:
        say(f"  {each}")
