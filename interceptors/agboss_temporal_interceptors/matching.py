"""Which entry an explicit call of an undo closes (rule R8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from agboss_temporal.core.ledger import Entry, State
from agboss_temporal.run import Run


def entry_to_close(run: Run, undo: str, args: Sequence[Any]) -> Entry | None:
    """Find the entry that a call of an undo closes, when the call is scheduled.

    Returns:
        The entry whose returned object the call was given, else the one whose recorded payload
        it equals, else the only open one with that undo. ``None`` if that leaves several, or
        none: repeating an idempotent undo is safer than losing one.
    """
    candidates = [
        e
        for e in run.ledger.pending()
        if e.contract.undo == undo and e.state in (State.OPEN, State.IN_DOUBT)
    ]
    if len(candidates) > 1:
        same = [e for e in candidates if _is_given(e, args)]
        candidates = same if len(same) == 1 else _equal(candidates, args) or candidates
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        workflow.logger.warning(
            "a call of undo %s fits %d open actions and closes none of them; they will be undone "
            "again at the latest when the run ends. Give it the object that the action returned",
            undo,
            len(candidates),
        )
        workflow.metric_meter().create_counter(
            "agboss_compensation_ambiguous_undos",
            "Explicit calls of an undo that could not be told to close an action.",
        ).add(1, {"undo": undo})
    return None


def _is_given(entry: Entry, args: Sequence[Any]) -> bool:
    return entry.value is not None and any(arg is entry.value for arg in args)


def _equal(candidates: list[Entry], args: Sequence[Any]) -> list[Entry]:
    given = [p.SerializeToString() for p in workflow.payload_converter().to_payloads(args)]
    return [e for e in candidates if given and given == _recorded(e)]


def _recorded(entry: Entry) -> list[bytes]:
    if entry.contract.undo_input == "args":
        return [payload.SerializeToString() for payload in entry.args]
    return [] if entry.raw is None else [entry.raw.SerializeToString()]
