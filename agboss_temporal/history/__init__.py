"""The ledger and the report of any run, from its Temporal history alone.

No worker and no workflow code are needed, only the events::

    history = await client.get_workflow_handle("order-1").fetch_history()
    ledger = await agboss_temporal.history.ledger(history)
    for entry in ledger.open_entries():
        print(entry.contract.action, entry.key)

`load` reads an export of the Web UI or of ``temporal workflow show -o json``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from agboss_temporal.core.errors import HistoryError
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.run_ledger import (
    ChildRun,
    RunEnd,
    RunEntry,
    RunLedger,
    UndoCall,
    Unreadable,
    UnrecordedCall,
)
from agboss_temporal.history.contracts import Declared
from agboss_temporal.history.files import load
from agboss_temporal.history.reading import read

__all__ = [
    "ChildRun",
    "HistoryError",
    "RunEnd",
    "RunEntry",
    "RunLedger",
    "UndoCall",
    "Unreadable",
    "UnrecordedCall",
    "ledger",
    "load",
    "report",
]

History: TypeAlias = WorkflowHistory | Iterable[HistoryEvent]


async def ledger(
    history: History,
    *,
    data_converter: DataConverter | None = None,
    contracts: Iterable[Declared] | None = None,
) -> RunLedger:
    """Rebuild the ledger of a run from its events.

    Args:
        history: All events of the run, from the first one on.
        data_converter: The client's converter, for what a codec has encoded: entries that an
            earlier run carried over, seals of units, headers if they are encoded too. Without it
            these are listed as unreadable. Payloads of entries stay as the history has them.
        contracts: What is declared: functions and classes marked with `action`, names given to
            `declare`, or `Contract` objects. By these are judged the calls that have no record,
            of a run from before the plugin was adopted. Without it they are `unrecorded`.

    Returns:
        The ledger as it stands after the last event.

    Raises:
        HistoryError: The events cannot be the history of a run: there are gaps, an undo comes
            before its action, something settles that was never scheduled, or a record is damaged
            or of an unknown version.
    """
    return await read(history, data_converter, contracts)


async def report(
    history: History,
    *,
    data_converter: DataConverter | None = None,
    contracts: Iterable[Declared] | None = None,
) -> CompensationReport:
    """Rebuild the report of a run from its events: the one that the workflow itself gives.

    What history cannot show is left out: times when nothing was scheduled or seen, and further
    errors that arrived while the run was ending, unless the run failed with
    `CompensationFailedError`, whose details hold them.

    Args:
        history: As in `ledger`.
        data_converter: As in `ledger`.
        contracts: As in `ledger`.

    Returns:
        The report.

    Raises:
        HistoryError: As in `ledger`.
    """
    return (await read(history, data_converter, contracts)).report
