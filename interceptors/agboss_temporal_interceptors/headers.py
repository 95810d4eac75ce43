"""The header that a named call carries."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import Payload

from agboss_temporal.call import Call
from agboss_temporal.core import wire
from agboss_temporal.core.ledger import Entry
from agboss_temporal.core.plan import Unwind


def record_of(call: Call) -> wire.CallRecord:
    """Say in a record what a named call is."""
    entry = call.entry
    contract = call.contract
    closes = call.undoes.key if call.undoes is not None else ""
    return wire.CallRecord(
        action_key=call.key if entry is not None else None,
        committer_key=call.key if call.commits is not None else None,
        undoes=closes if call.is_undo else None,
        explicit=call.is_undo,
        own_key=call.key if call.is_undo and not closes else None,
        undo=contract.undo if contract is not None else None,
        committer=contract.committer if contract is not None else None,
        unit=call.unit,
        options=wire.options_of(contract) if contract is not None else {},
    )


def record_of_undo(entry: Entry, unwind: Unwind) -> wire.CallRecord:
    """Say in a record what an undo of an unwind is; the first also says what started it."""
    first = entry is unwind.plan[0].entry
    return wire.CallRecord(
        undoes=entry.key,
        unwind=unwind.ordinal,
        trigger=unwind.trigger if first else None,
        cause=unwind.cause if first else None,
    )


def with_record(headers: Mapping[str, Payload], record: wire.CallRecord) -> dict[str, Payload]:
    """Add a record to the headers of a call."""
    payload = Payload(metadata={"encoding": b"json/plain"}, data=wire.encode(record))
    return {**headers, wire.HEADER: payload}
