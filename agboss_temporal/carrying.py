"""Taking entries from one run to another: out of the one's ledger, into the other's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import Priority

from agboss_temporal.core import carry
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry
from agboss_temporal.run import Run
from agboss_temporal.undo_options import from_json, to_json


def packed(entries: Sequence[Entry], *, binding: bool = False) -> list[carry.Carried]:
    """Take entries along.

    Args:
        entries: The entries, in the order in which they settled.
        binding: Whether their contracts hold as they are, whatever the next worker declares.
    """
    queue = workflow.info().task_queue
    rows = [
        carry.carried(entry, queue, _priority(entry.priority), after)
        for entry, after in zip(entries, carry.overlaps(entries), strict=True)
    ]
    return [_bound(row) for row in rows] if binding else rows


def _bound(row: carry.Carried) -> carry.Carried:
    """Add what the undo's call takes, and leave out what the undo is not given."""
    given = row.contract.undo_input in ("result", "context")
    return dataclasses.replace(
        row,
        raw=row.raw if given else None,
        undo_options=to_json(row.contract.undo_options),
    )


def unpack(run: Run, carried: Sequence[carry.Carried], *, binding: bool = False) -> list[Entry]:
    """Take entries over into the ledger of a run that has none yet.

    Args:
        run: The run.
        carried: The entries, in the order in which they settled.
        binding: Whether their contracts hold as they are; else what this worker declares wins.
    """
    entries = []
    # Ordinals below those of the run's own calls: what was carried was started before.
    for number, each in enumerate(carried, -len(carried)):
        entry = Entry(key=each.key, contract=_contract(run, each, binding), ordinal=number)
        entry.task_queue = each.task_queue
        entry.args = tuple(Payload.FromString(arg) for arg in each.args)
        entry.priority = None if each.priority is None else Priority(*each.priority)
        entry.origin = each.origin
        run.ledger.begin(entry)
        if each.after is not None:
            entry.after = min(each.after, entry.after)
        run.named_calls += 1
        if each.doubt is not None:
            run.ledger.doubt(entry, each.doubt)
        else:
            raw = None if each.raw is None else Payload.FromString(each.raw)
            run.ledger.complete(entry, raw)
        entries.append(entry)
    return entries


def _contract(run: Run, each: carry.Carried, binding: bool) -> Contract:
    if not binding:
        return run.contracts.get(each.contract.kind, each.contract.action) or each.contract
    if each.undo_options is None:
        return each.contract
    return dataclasses.replace(each.contract, undo_options=from_json(each.undo_options))


def _priority(priority: Priority | None) -> tuple[Any, ...] | None:
    if priority is None:
        return None
    return (priority.priority_key, priority.fairness_key, priority.fairness_weight)
