"""What a program comes to, as the reference says it and as a server shows it."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Outcome:
    """All that is compared.

    Attributes:
        status: The close status of the run.
        error: What it failed with: types, outermost first.
        world: What activities really did, in order.
        trace: What was in flight before each move, and the move.
        planned: Action, outcome, verdict and ordinal of each planned entry of the last run.
        in_doubt: Name, kind and role of each call in doubt, sorted.
        report: The report's status.
        updates: What the callers of updates were told.
    """

    status: str = "COMPLETED"
    error: str = ""
    world: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    planned: tuple[tuple[str, str, str, str], ...] = ()
    in_doubt: tuple[tuple[str, str, str], ...] = ()
    report: str = "none"
    updates: tuple[str, ...] = ()


def difference(expected: Outcome, got: Outcome) -> str:
    """Say where two outcomes differ; empty if they agree."""
    lines = []
    for field in fields(Outcome):
        wanted, found = getattr(expected, field.name), getattr(got, field.name)
        if wanted != found:
            lines.append(f"{field.name}:\n  expected {_text(wanted)}\n  got      {_text(found)}")
    return "\n".join(lines)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return "\n           ".join(str(each) for each in value) or "nothing"
    return str(value) or "nothing"
