"""Entries that a run begins with: an earlier run has carried them over, or another has planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agboss_temporal.core.carry import Carried
from agboss_temporal.core.contract import Contract, ContractTable
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.recovery import RecoveryPlan
from agboss_temporal.core.rows import Row, Rows
from agboss_temporal.core.unwinds_seen import UnwindsSeen


class Adoption:
    """Enters what other runs have handed on.

    Args:
        rows: The entries.
        ledger: The ledger that they are in.
        unwinds: The unwinds of the run.
    """

    def __init__(self, rows: Rows, ledger: Ledger, unwinds: UnwindsSeen) -> None:
        self._rows = rows
        self._ledger = ledger
        self._unwinds = unwinds

    def carried(
        self,
        carried: Sequence[Carried],
        table: ContractTable | None,
        parse: Callable[[bytes], Any],
    ) -> None:
        """Take over what an earlier run handed on.

        Args:
            carried: The entries, oldest first.
            table: What is declared now, which wins.
            parse: Reads a serialized payload.
        """
        for number, each in enumerate(carried, -len(carried)):
            contract = each.contract
            declared = table.get(contract.kind, contract.action) if table is not None else None
            self._enter(each, declared or contract, number, parse)

    def planned(self, plan: RecoveryPlan, parse: Callable[[bytes], Any]) -> None:
        """Take over what another run has planned: this is a recovery workflow.

        Args:
            plan: The plan; the contracts of its entries hold as they are.
            parse: Reads a serialized payload.
        """
        entries = [
            self._enter(each, each.contract, number, parse)
            for number, each in enumerate(plan.entries, -len(plan.entries))
        ]
        unwind = Unwind(plan.trigger, plan.cause, ordinal=plan.unwind, origin=plan.workflow_id)
        unwind.plan = [Planned(entries[n], outcome=entries[n].outcome) for n in plan.order]
        self._unwinds.adopt(unwind)

    def _enter(
        self, each: Carried, contract: Contract, number: int, parse: Callable[[bytes], Any]
    ) -> Entry:
        entry = Entry(key=each.key, contract=contract, ordinal=number)
        entry.task_queue = each.task_queue
        entry.priority = each.priority
        row = Row(entry, carried=True, args=tuple(map(parse, each.args)))
        self._rows.enter(row, 1)
        if each.after is not None:
            entry.after = min(each.after, entry.after)
        if each.doubt is not None:
            self._ledger.doubt(entry, each.doubt)
        else:
            row.result = None if each.raw is None else parse(each.raw)
            self._ledger.complete(entry, None)
        return entry
