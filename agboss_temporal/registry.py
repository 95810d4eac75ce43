"""The contracts of this process, and which of them a worker knows.

Names belong to task queues, not to processes, so one name may stand here several times. Only data
is kept: the sandbox executes user modules again for every run, and a kept function would keep a
copy of its module alive.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from agboss_temporal.core.contract import Contract, ContractTable, Fault, Kind
from agboss_temporal.reach import reachable

CONTRACT_ATTRIBUTE: Final = "__agboss_contract__"
"""Where ``@action`` leaves the contract on the function or class that it marks."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a contract comes from. Declaring again at the same origin replaces it."""

    module: str
    name: str
    kind: Kind
    declared: bool


_contracts: dict[_Origin, Contract] = {}


def contract_of(target: Any) -> Contract | None:
    """Return the contract that ``@action`` left on a function, method or class."""
    found = getattr(target, CONTRACT_ATTRIBUTE, None)
    if isinstance(target, type) and CONTRACT_ATTRIBUTE not in vars(target):
        return None
    return found if isinstance(found, Contract) else None


def remember(contract: Contract, *, module: str, name: str, declared: bool) -> None:
    """Add a contract to the process.

    Args:
        contract: The contract.
        module: Module that declares it.
        name: Qualified name of what is marked, or the place of a ``declare`` call.
        declared: Whether it was given by ``declare``.
    """
    _contracts[_Origin(module, name, contract.kind, declared)] = contract


def knows(contract: Contract, *, module: str, name: str, declared: bool) -> bool:
    """Tell whether this very contract was added at this very place before."""
    return _contracts.get(_Origin(module, name, contract.kind, declared)) == contract


def is_declared(name: str) -> bool:
    """Tell whether some ``declare`` call names an activity or workflow type."""
    return any(o.declared and c.action == name for o, c in list(_contracts.items()))


def declared(name: str) -> list[Contract]:
    """List the contracts that ``declare`` calls give to an activity or workflow type."""
    found = [c for o, c in list(_contracts.items()) if o.declared and c.action == name]
    return [c for n, c in enumerate(found) if c not in found[:n]]


def reached_from(module: str) -> list[Contract]:
    """List the contracts that an imported module, and what it imports, declare."""
    reached = reachable([_At(module)])
    found = [
        contract
        for origin, contract in list(_contracts.items())
        if origin.module in reached and "<locals>" not in origin.name
    ]
    return [contract for n, contract in enumerate(found) if contract not in found[:n]]


class _At:
    """Something of a module."""

    def __init__(self, module: str) -> None:
        self.__module__ = module


def select(
    activities: Iterable[Callable[..., Any]], workflows: Iterable[type]
) -> tuple[ContractTable, list[Fault]]:
    """Choose the contracts that a worker knows.

    For each name: the contract of what the worker registers itself; else the one that the modules
    of its workflows and activities import or ``declare``; else the only one in the process. A
    ``declare`` that those modules reach and that differs is a conflict, and so are two different
    contracts that they reach while the worker registers neither. What is marked inside a function
    counts only for the worker that registers it.

    Returns:
        The table, and what is wrong with the contracts that the worker registers or reaches.
    """
    targets = [*activities, *workflows]
    own: dict[tuple[Kind, str], Contract] = {}
    for target in targets:
        contract = contract_of(target)
        if contract is not None:
            own[(contract.kind, contract.action)] = contract
    reached = reachable(targets)
    near: dict[tuple[Kind, str], list[tuple[_Origin, Contract]]] = {}
    far: dict[tuple[Kind, str], list[Contract]] = {}
    for origin, contract in list(_contracts.items()):
        if "<locals>" in origin.name:
            continue
        name = (contract.kind, contract.action)
        far.setdefault(name, []).append(contract)
        if origin.module in reached:
            near.setdefault(name, []).append((origin, contract))
    table, faults = _resolve(own, near, far)
    for name in {**own, **near}:
        chosen = table.get(*name)
        undo = table.get("activity", chosen.undo) if chosen and chosen.undo else None
        if chosen is not None and undo is not None and undo.is_action:
            faults.append(undo_is_undoable(chosen))
    return table, faults


def undo_is_undoable(contract: Contract) -> Fault:
    """Make the fault of an undo that has an undo itself."""
    return contract.fault(
        "undo-is-undoable",
        f"its undo {contract.undo!r} is declared as an action itself; an undo is never undone, "
        "so remove that declaration",
    )


def _resolve(
    own: dict[tuple[Kind, str], Contract],
    near: dict[tuple[Kind, str], list[tuple[_Origin, Contract]]],
    far: dict[tuple[Kind, str], list[Contract]],
) -> tuple[ContractTable, list[Fault]]:
    chosen: dict[tuple[Kind, str], Contract] = dict(own)
    faults: list[Fault] = []
    ambiguous: list[tuple[Kind, str]] = []
    for name, everywhere in far.items():
        mine = chosen.get(name)
        rivals = [c for o, c in near.get(name, []) if mine is None or o.declared]
        if mine is None and rivals:
            mine = chosen[name] = rivals[0]
        if mine is not None:
            faults += [_conflict(mine, rival) for rival in _others(mine, rivals)]
        elif _others(everywhere[0], everywhere):
            ambiguous.append(name)
        else:
            chosen[name] = everywhere[0]
    return ContractTable(chosen.values(), ambiguous=ambiguous), faults


def _others(mine: Contract, rivals: Iterable[Contract]) -> list[Contract]:
    return [rival for rival in rivals if rival != mine]


def _conflict(mine: Contract, rival: Contract) -> Fault:
    return rival.fault(
        "conflicting-contract",
        f"it is declared differently at {mine.place}, and one worker would use both; "
        "make them the same or remove one",
    )


def caller_place(depth: int) -> tuple[str, int, str]:
    """Return file, line and module of a calling frame.

    Args:
        depth: How many frames up, 1 being the caller of the function that asks.
    """
    frame = inspect.currentframe()
    for _ in range(depth + 1):
        frame = frame.f_back if frame is not None else None
    if frame is None:
        return "<unknown>", 0, "<unknown>"
    module = str(frame.f_globals.get("__name__", "<unknown>"))
    return frame.f_code.co_filename, frame.f_lineno, module
