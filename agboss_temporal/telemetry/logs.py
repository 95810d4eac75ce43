"""Structured log records of workflow code; never while a run is replayed."""

from __future__ import annotations

import logging
from typing import Any

from temporalio import workflow

from agboss_temporal.core.entry import Entry
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.telemetry import names


def log(level: int, event: str, message: str, *args: object, **fields: object) -> None:
    """Write a record whose field ``agboss_compensation`` says the same as its message.

    Names, keys, counts and error types only: never a payload, never an error's message.

    Args:
        level: Level of `logging`.
        event: What happened, in one word.
        message: The same for people, with the placeholders of `logging`.
        args: What they stand for.
        fields: What machines look for; ``None`` is left out.
    """
    if workflow.logger.isEnabledFor(level):
        workflow.logger.log(level, message, *args, extra=extra(event, fields), stacklevel=2)


def extra(event: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Make the extra fields of a record."""
    said = {name: value for name, value in fields.items() if value is not None}
    return {names.EXTRA: {"event": event, **said}}


def opened(entry: Entry) -> None:
    """Tell that an action took effect."""
    name = entry.contract.action
    log(logging.DEBUG, "opened", "%s is open", name, action=name, key=entry.key)


def sealed(entry: Entry) -> None:
    """Tell that nothing undoes an action any more."""
    name = entry.contract.action
    log(logging.DEBUG, "sealed", "%s is sealed", name, action=name, key=entry.key)


def in_doubt(entry: Entry) -> None:
    """Tell that an action may have taken effect."""
    name = entry.contract.action
    log(
        logging.WARNING,
        "in_doubt",
        "nobody knows whether %s took effect (%s); an unwind %s it",
        name,
        entry.doubt,
        "undoes" if entry.contract.on_unknown == "undo" else "only reports",
        action=name,
        key=entry.key,
        doubt=entry.doubt,
    )


def committer_in_doubt(committer: CommitterInDoubt) -> None:
    """Tell that a committer may have taken effect; it sealed nothing."""
    log(
        logging.WARNING,
        "in_doubt",
        "nobody knows whether committer %s took effect (%s); it sealed nothing",
        committer.name,
        committer.doubt,
        committer=committer.name,
        key=committer.key,
        doubt=committer.doubt,
    )


def unwind_started(unwind: Unwind) -> None:
    """Tell that an unwind has begun."""
    log(
        logging.INFO,
        "unwind_started",
        "unwind of %s started: %s (%s)",
        unwind.unit or "the run",
        unwind.trigger,
        unwind.cause,
        trigger=unwind.trigger,
        cause=unwind.cause,
        unit=unwind.unit,
    )


def unwind_ended(unwind: Unwind, verdicts: dict[str, int]) -> None:
    """Tell how an unwind ended; a warning where it leaves something behind."""
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    log(
        logging.WARNING if unwind.left_behind else logging.INFO,
        "unwind_ended",
        "unwind of %s ended: %s (%s)",
        unwind.unit or "the run",
        unwind.status,
        counted or "nothing to undo",
        trigger=unwind.trigger,
        cause=unwind.cause,
        unit=unwind.unit,
        ordinal=unwind.ordinal or None,
        status=unwind.status,
        verdicts=verdicts,
    )


def undo_gave_up(planned: Planned) -> None:
    """Tell that an undo was given up."""
    contract = planned.entry.contract
    log(
        logging.ERROR,
        "undo_gave_up",
        "the undo of %s gave up: %s",
        contract.action,
        planned.reason,
        action=contract.action,
        undo=contract.undo,
        key=planned.entry.key,
        reason=planned.reason,
    )
