"""The header that a named call carries."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from temporalio.api.common.v1 import Payload

from agboss_temporal.call import Call
from agboss_temporal.core import wire
from agboss_temporal.core.contract import Contract, Kind
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.plan import Unwind

_PLAIN: Final = {"encoding": b"json/plain"}


class Records:
    """Writes the records of one worker's calls."""

    def __init__(self) -> None:
        self._templates: dict[tuple[Kind, str], wire.ActionTemplate] = {}

    def of_call(self, call: Call, link: str | None = None) -> bytes:
        """Write what a named call is, and to which span it is linked if it is an undo."""
        if call.entry is None or call.commits or call.is_undo or call.update or call.abandons:
            return wire.encode(dataclasses.replace(record_of(call), link=link))
        return self._template(call.entry.contract).fill(call.key, call.started_in)

    def of_undo(self, entry: Entry, unwind: Unwind, link: str | None = None) -> bytes:
        """Write what an undo of an unwind is; the first one also tells of the unwind."""
        first, unwind.announced = not unwind.announced, True
        record = record_of_undo(entry, unwind, first=first)
        return wire.encode(dataclasses.replace(record, link=link))

    def of_hand_over(self, number: int, unwind: Unwind) -> bytes:
        """Write what a child is that takes over a part of an unwind."""
        first, unwind.announced = not unwind.announced, True
        record = wire.CallRecord(
            hands_over=number,
            unwind=unwind.ordinal,
            trigger=unwind.trigger,
            cause=unwind.cause,
        )
        return wire.encode(_announcing(record, unwind) if first else record)

    def _template(self, contract: Contract) -> wire.ActionTemplate:
        name = (contract.kind, contract.action)
        found = self._templates.get(name)
        if found is None:
            found = self._templates[name] = wire.ActionTemplate.of(contract)
        return found


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
        unit=call.started_in,
        ended=tuple(call.ended),
        update=call.update,
        abandons=call.abandons,
        undoes_action=call.undoes.contract.action if call.undoes is not None else None,
        options=wire.options_of(contract) if contract is not None else {},
    )


def record_of_undo(entry: Entry, unwind: Unwind, *, first: bool) -> wire.CallRecord:
    """Say in a record what an undo of an unwind is, and if it is the first, of which one."""
    record = wire.CallRecord(
        undoes=entry.key,
        unwind=unwind.ordinal,
        origin=entry.origin or unwind.origin,
        undoes_action=entry.contract.action,
    )
    return _announcing(record, unwind) if first else record


def _announcing(record: wire.CallRecord, unwind: Unwind) -> wire.CallRecord:
    """Add what nothing else in a history says of an unwind."""
    kept = [p.entry.key for p in unwind.plan if p.entry.contract.irreversible]
    return dataclasses.replace(
        record,
        trigger=unwind.trigger,
        cause=unwind.cause,
        label=unwind.unit,
        kept=tuple(kept),
    )


def with_record(headers: Mapping[str, Payload], record: bytes) -> dict[str, Payload]:
    """Add an encoded record to the headers of a call."""
    return {**headers, wire.HEADER: Payload(metadata=_PLAIN, data=record)}
