"""Which entry an explicit call of an undo closes (rule R8)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from agboss_temporal.core.entry import Entry, State, fingerprint, undo_payloads
from agboss_temporal.run import Run
from agboss_temporal.telemetry import names
from agboss_temporal.telemetry.logs import log


def entry_to_close(run: Run, undo: str, args: Sequence[Any]) -> Entry | None:
    """Find the entry that a call of an undo closes, when the call is scheduled.

    Returns:
        The entry whose returned object the call was given, else the one whose recorded payload
        it equals, else the only open one with that undo. ``None`` if that leaves several, or
        none, or if the call repeats what closed another entry: repeating an idempotent undo is
        safer than losing one. What closed in the runs before is forgotten, so an entry that was
        carried over takes only what equals its own.
    """
    candidates = [
        e
        for e in run.ledger.pending()
        if e.contract.undo == undo and e.state in (State.OPEN, State.IN_DOUBT)
    ]
    same = [e for e in candidates if _is_given(e, args)]
    if len(same) == 1 or not candidates:
        return same[0] if same else None
    given = fingerprint(workflow.payload_converter().to_payloads(args)) if args else b""
    equal = [e for e in candidates if given and given == fingerprint(undo_payloads(e))]
    if len(equal) == 1:
        return equal[0]
    if not equal and given and run.ledger.closed_before(undo, given):
        return None
    if len(candidates) == 1 and not (given and _is_carried(candidates[0])):
        return candidates[0]
    _warn_of_ambiguity(undo, len(equal or candidates))
    return None


def _is_given(entry: Entry, args: Sequence[Any]) -> bool:
    return entry.value is not None and len(args) == 1 and args[0] is entry.value


def _is_carried(entry: Entry) -> bool:
    """Tell whether an entry was opened by a run before this one."""
    return entry.ordinal < 0


def _warn_of_ambiguity(undo: str, count: int) -> None:
    log(
        logging.WARNING,
        "ambiguous_undo",
        "a call of undo %s fits %d open actions and closes none of them; they will be undone "
        "again at the latest when the run ends. Give it the object that the action returned",
        undo,
        count,
        undo=undo,
        fits=count,
    )
    workflow.metric_meter().create_counter(
        names.AMBIGUOUS_UNDOS, names.DESCRIPTIONS[names.AMBIGUOUS_UNDOS]
    ).add(1, {"undo": undo})
