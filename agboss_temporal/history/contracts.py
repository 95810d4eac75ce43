"""What is declared: by the records of calls, or by what the caller of `ledger` gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias

from temporalio.common import RetryPolicy

from agboss_temporal import registry
from agboss_temporal.core.contract import Contract, ContractTable, Kind
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.wire import CallRecord

Declared: TypeAlias = Callable[..., Any] | type | str | Contract
"""Something marked with ``@action``, a name given to ``declare``, or a contract itself."""

_TIMES: Final = {
    "S": "start_to_close_timeout",
    "C": "schedule_to_close_timeout",
    "H": "heartbeat_timeout",
}


def table_of(declared: Iterable[Declared] | None) -> ContractTable | None:
    """Collect contracts.

    Raises:
        TypeError: Something has no contract, or a name has several.
    """
    if declared is None:
        return None
    found: dict[tuple[Kind, str], Contract] = {}
    for each in declared:
        for contract in _contracts_of(each):
            name = (contract.kind, contract.action)
            if found.setdefault(name, contract) != contract:
                raise TypeError(f"{contract.kind} {contract.action!r} has differing contracts")
    return ContractTable(found.values())


def _contracts_of(declared: Declared) -> list[Contract]:
    if isinstance(declared, Contract):
        return [declared]
    if isinstance(declared, str):
        found = registry.declared(declared)
    else:
        marked = registry.contract_of(declared)
        found = [] if marked is None else [marked]
    if not found:
        raise TypeError(
            f"{declared!r} has no contract; give what is marked with @action, a name that is "
            "given to declare, or a Contract"
        )
    return found


class Recorded:
    """Reads contracts out of records; those of one declaration are one object."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Contract] = {}

    def contract(self, kind: Kind, name: str, record: CallRecord) -> Contract:
        """Return the contract that a record says its call has."""
        options = record.options
        key = (kind, name, record.undo, record.committer, repr(options) if options else "")
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Contract(
                action=name,
                kind=kind,
                undo=record.undo,
                committer=record.committer,
                undo_input=options.get("I", "result"),
                undo_options=_undo_options(options),
                on_unknown="undo" if options.get("D") else "report",
                no_effect_errors=tuple(options.get("N") or ()),
                irreversible=bool(options.get("R")),
            )
        return made


def _time(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (ValueError, OverflowError) as err:
        raise RecordError("the compensation header has a timeout that is no time") from err


def _undo_options(options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: _time(options[short])
        for short, name in _TIMES.items()
        if options.get(short) is not None
    }
    if options.get("Q"):
        found["task_queue"] = options["Q"]
    if options.get("M"):
        found["retry_policy"] = RetryPolicy(maximum_attempts=options["M"])
    return found
