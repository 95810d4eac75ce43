"""Declaring what undoes what: ``@action`` on the code, ``declare`` for code that is elsewhere."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from agboss_temporal import _compat, registry, signatures
from agboss_temporal.core.contract import (
    Contract,
    Fault,
    Kind,
    OnUnknown,
    Place,
    UndoInput,
    faults_of,
)
from agboss_temporal.core.errors import ContractError
from agboss_temporal.undo_options import wrong_values

F = TypeVar("F", bound=Callable[..., Any])

Target = Callable[..., Any] | type | str
"""A callable or class that Temporal knows, or its registered name."""


@dataclass(frozen=True, slots=True)
class _Terms:
    """What `action` and `declare` were told, as it was written."""

    compensate_with: Target | None
    committed_by: Target | None
    undo_input: UndoInput
    undo_options: Mapping[str, Any] | None
    on_unknown: OnUnknown
    no_effect_errors: Iterable[type[BaseException] | str]
    irreversible: bool

    def contract(self, name: str, kind: Kind, place: Place) -> tuple[Contract, list[Fault]]:
        """Reduce it to names and data for one type; return also what is wrong with it."""
        undo, committer = self.compensate_with, self.committed_by
        wire_types, problems = _wire_types(self.no_effect_errors)
        problems += wrong_values(self.undo_options or {})
        given_nothing = undo is not None and _takes_nothing(undo)
        known = self.undo_input in get_args(UndoInput)
        contract = Contract(
            action=name,
            kind=kind,
            undo=_registered_name(undo),
            committer=_registered_name(committer),
            undo_input="nothing" if given_nothing and known else self.undo_input,
            undo_options=dict(self.undo_options or {}),
            on_unknown=self.on_unknown,
            no_effect_errors=wire_types,
            irreversible=self.irreversible,
            place=place,
        )
        faults = faults_of(contract)
        faults += [contract.fault("unknown-option", problem) for problem in problems]
        return contract, faults + _target_faults(contract, undo, committer)


def action(
    *,
    compensate_with: Target | None = None,
    committed_by: Target | None = None,
    undo_input: UndoInput = "result",
    undo_options: Mapping[str, Any] | None = None,
    on_unknown: OnUnknown = "report",
    no_effect_errors: Iterable[type[BaseException] | str] = (),
    irreversible: bool = False,
) -> Callable[[F], F]:
    """Declare how an activity, or a child workflow class, is undone.

    Stands above ``@activity.defn`` or ``@workflow.defn`` and returns the same object: calls,
    types and registration stay as they were.

    Args:
        compensate_with: The activity that reverses it, or its registered name.
        committed_by: The activity or workflow whose completion puts it past the point of no
            return. Left out, the finish of the run does.
        undo_input: What the undo is given: ``"result"`` (the recorded result), ``"args"`` (the
            action's own arguments), ``"context"`` (one `UndoContext`) or ``"nothing"``. An undo
            without parameters always gets nothing.
        undo_options: Options of the undo's call, by the names of temporalio's ``ActivityConfig``;
            they win over the policy's.
        on_unknown: For an execution that was started and has no result: ``"report"`` it and leave
            it, or ``"undo"`` it, with an undo that does nothing where nothing was done.
        no_effect_errors: Exception classes, or their wire types, that prove that nothing was done.
        irreversible: There is no inverse. Nothing is run, and an unwind's status is never
            ``completed``.

    Returns:
        A decorator that returns what it is given.

    Raises:
        ContractError: What can be told wrong by this declaration alone, all of it. The rest is
            told when the worker is constructed.
    """
    terms = _Terms(
        compensate_with,
        committed_by,
        undo_input,
        undo_options,
        on_unknown,
        no_effect_errors,
        irreversible,
    )

    def mark(target: F) -> F:
        place = _place_of(target)
        definition = _compat.workflow_definition(target) or _compat.activity_definition(target)
        name = definition.name if definition else None
        kind: Kind = "activity" if _compat.workflow_definition(target) is None else "workflow"
        contract, faults = terms.contract(name or _qualified(target), kind, place)
        if not name:
            raise ContractError([_no_activity(contract, target), *faults])
        origin = {"module": target.__module__, "name": _qualified(target)}
        if callable(compensate_with) and not registry.knows(contract, declared=False, **origin):
            faults += check_input(contract, target, compensate_with)
        if faults:
            raise ContractError(faults)
        setattr(target, registry.CONTRACT_ATTRIBUTE, contract)
        registry.remember(contract, declared=False, **origin)
        return target

    return mark


def declare(
    name: str,
    *,
    kind: Kind = "activity",
    compensate_with: Target | None = None,
    committed_by: Target | None = None,
    undo_input: UndoInput = "result",
    undo_options: Mapping[str, Any] | None = None,
    on_unknown: OnUnknown = "report",
    no_effect_errors: Iterable[type[BaseException] | str] = (),
    irreversible: bool = False,
) -> None:
    """Declare the contract of a type that another worker implements, maybe in another language.

    Call it at module level, in a module that the workflow's module imports. Without
    ``compensate_with`` it only says that the type exists elsewhere, which is enough for an undo or
    a committer.

    Args:
        name: Registered name of the activity or workflow type.
        kind: ``"activity"`` or ``"workflow"``.
        compensate_with: As in `action`.
        committed_by: As in `action`.
        undo_input: As in `action`.
        undo_options: As in `action`; give ``task_queue`` if the undo has a queue of its own.
        on_unknown: As in `action`.
        no_effect_errors: As in `action`.
        irreversible: As in `action`.

    Raises:
        ContractError: The declaration is wrong; every fault of it is named.
    """
    file, line, module = registry.caller_place(1)
    terms = _Terms(
        compensate_with,
        committed_by,
        undo_input,
        undo_options,
        on_unknown,
        no_effect_errors,
        irreversible,
    )
    contract, faults = terms.contract(name, kind, Place(file, line))
    if faults:
        raise ContractError(faults)
    registry.remember(contract, module=module, name=f"{file}:{line}:{name}", declared=True)


def check_input(contract: Contract, target: Any, undo: Any) -> list[Fault]:
    """Check an undo against what it will be given; a merely narrower model is a warning."""
    if contract.undo_input not in get_args(UndoInput):
        return []
    fit, why = signatures.check(target, undo, contract.undo_input)
    if fit == "fits":
        return []
    fault = contract.fault("undo-input", f"undo {contract.undo!r}: {why}")
    if fit == "clashes":
        return [fault]
    warnings.warn(str(fault), UserWarning, stacklevel=4)
    return []


def _target_faults(
    contract: Contract, compensate_with: Target | None, committed_by: Target | None
) -> list[Fault]:
    faults: list[Fault] = []
    if compensate_with is not None and not _is_activity(compensate_with):
        faults.append(_no_activity(contract, compensate_with))
    if committed_by is not None and not (
        _is_activity(committed_by) or _compat.workflow_definition(committed_by)
    ):
        faults.append(_no_activity(contract, committed_by))
    undo_contract = registry.contract_of(compensate_with)
    if undo_contract is not None and undo_contract.is_action:
        faults.append(registry.undo_is_undoable(contract))
    return faults


def _wire_types(errors: Any) -> tuple[tuple[str, ...], list[str]]:
    """Return the wire types of error classes, and what else was given in their place."""
    if isinstance(errors, str) or not isinstance(errors, Iterable):
        return (), [f"no_effect_errors is {errors!r}; give a list of exception classes or names"]
    names: list[str] = []
    problems: list[str] = []
    for error in errors:
        if isinstance(error, str):
            names.append(error)
        elif isinstance(error, type) and issubclass(error, BaseException):
            names.append(error.__name__)
        else:
            problems.append(
                f"no_effect_errors has {error!r}; give the exception class or its wire type"
            )
    return tuple(names), problems


def _registered_name(target: Target | None) -> str | None:
    if target is None or isinstance(target, str):
        return target
    definition = _compat.workflow_definition(target) or _compat.activity_definition(target)
    if definition is not None and definition.name:
        return definition.name
    return _qualified(target)


def _qualified(target: Any) -> str:
    """Name a function or class; what has no name of its own goes by how it is written."""
    return str(getattr(target, "__qualname__", None) or repr(target))


def _is_activity(target: Target) -> bool:
    if isinstance(target, str):
        return bool(target)
    definition = _compat.activity_definition(target)
    return definition is not None and bool(definition.name)


def _takes_nothing(target: Target) -> bool:
    return (
        not isinstance(target, str) and _is_activity(target) and not signatures.parameters(target)
    )


def _no_activity(contract: Contract, target: Any) -> Fault:
    return contract.fault("not-an-activity", _not_an_activity(target))


def _not_an_activity(target: Any) -> str:
    return (
        f"{_qualified(target)} is not a named activity or workflow; put @activity.defn or "
        "@workflow.defn on it, below @action"
    )


def _place_of(target: Any) -> Place:
    code = getattr(inspect.unwrap(target) if callable(target) else target, "__code__", None)
    if code is not None:
        return Place(code.co_filename, code.co_firstlineno)
    file, line, _ = registry.caller_place(2)
    return Place(file, line)


def name_of(target: Target) -> str:
    """Return the registered name of an activity, a workflow class, or of a name itself.

    Raises:
        TypeError: It is none of these.
    """
    name = _registered_name(target)
    if name is None or not (_is_activity(target) or _compat.workflow_definition(target)):
        raise TypeError(_not_an_activity(target))
    return name
