"""Does an undo fit what it will be given? Arity first, then types, as far as they are known."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from agboss_temporal import _compat
from agboss_temporal.core.contract import UndoInput
from agboss_temporal.undo_context import UndoContext

Fit = Literal["fits", "narrower", "clashes"]

_SCALARS: dict[type, str] = {
    str: "string",
    bytes: "bytes",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    tuple: "array",
    set: "array",
    frozenset: "array",
    type(None): "null",
}


def parameters(fn: Callable[..., Any]) -> list[inspect.Parameter]:
    """List the positional parameters of an activity, without ``self``."""
    found = [
        p
        for p in inspect.signature(fn).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
    ]
    return found[1:] if found and found[0].name == "self" else found


def check(
    action: Callable[..., Any] | type, undo: Callable[..., Any], undo_input: UndoInput
) -> tuple[Fit, str]:
    """Compare what an undo takes with what it will be given.

    Args:
        action: The activity callable or workflow class.
        undo: The undo's callable.
        undo_input: What the undo will be given.

    Returns:
        How it fits, and if it does not, a sentence that says why.
    """
    given, hints = _given(action, undo_input)
    takes = parameters(undo)
    problem = _arity(takes, given)
    if problem:
        return "clashes", f"{problem} with undo_input={undo_input!r}"
    definition = _compat.activity_definition(undo)
    wanted = (definition.arg_types if definition else None) or []
    worst: tuple[Fit, str] = ("fits", "")
    for hint, want in zip(hints, wanted, strict=False):
        fit = compare(hint, want)
        message = f"it takes {_name(want)} and is given {_name(hint)}"
        if fit == "clashes":
            return fit, message
        if fit == "narrower":
            worst = (fit, message)
    return worst


def _given(action: Any, undo_input: UndoInput) -> tuple[int, Sequence[Any]]:
    if undo_input == "nothing":
        return 0, []
    if undo_input == "context":
        return 1, [UndoContext]
    definition = _compat.activity_definition(action) or _compat.workflow_definition(action)
    if definition is None:
        return 1, []
    if undo_input == "result":
        return 1, [definition.ret_type if _has_return(action) else None]
    return len(definition.arg_types or []), definition.arg_types or []


def _has_return(action: Any) -> bool:
    if isinstance(action, type):
        return True
    return inspect.signature(action).return_annotation is not inspect.Signature.empty


def _arity(takes: list[inspect.Parameter], given: int) -> str | None:
    if any(p.kind is p.VAR_POSITIONAL for p in takes):
        return None
    if len(takes) == given:
        return None
    required = sum(1 for p in takes if p.default is p.empty)
    problem = f"it takes {len(takes)} argument{'s' if len(takes) != 1 else ''}, not {given},"
    if required <= given < len(takes):
        problem = f"Temporal drops an activity's type hints when defaults fill in: {problem}"
    return problem


def compare(given: Any, wanted: Any) -> Fit:
    """Compare the type of a recorded value with the type that it will be decoded to."""
    if given is None or wanted is None or given is wanted or Any in (given, wanted):
        return "fits"
    choices = _choices(wanted)
    if len(choices) > 1 or len(_choices(given)) > 1:
        return _compare_unions(_choices(given), choices)
    given_shape, wanted_shape = _shape(given), _shape(wanted)
    if given_shape is None or wanted_shape is None:
        return "fits"
    if given_shape != wanted_shape:
        return "clashes"
    if wanted_shape != "object":
        return "fits"
    return _compare_models(given, wanted)


def _compare_unions(given: Sequence[Any], wanted: Sequence[Any]) -> Fit:
    fits = [[compare(g, w) for w in wanted] for g in given if g is not type(None)]
    if all("fits" in row for row in fits):
        return "fits"
    return "narrower" if any(set(row) - {"clashes"} for row in fits) else "clashes"


def _compare_models(given: Any, wanted: Any) -> Fit:
    if isinstance(given, type) and isinstance(wanted, type) and issubclass(given, wanted):
        return "fits"
    has, needs = _fields(given), _fields(wanted)
    if has is None or needs is None:
        return "fits"
    if any(required and name not in has for name, required in needs.items()):
        return "clashes"
    return "narrower"


def _choices(hint: Any) -> tuple[Any, ...]:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _shape(hint: Any) -> str | None:
    """Name the JSON shape of a type, or ``None`` if it can be several."""
    base = typing.get_origin(hint) or hint
    if base in _SCALARS:
        return _SCALARS[base]
    if _fields(base) is not None or base is dict:
        return "object"
    return None


def _fields(hint: Any) -> dict[str, bool] | None:
    """Map the JSON fields of a model to whether each is required."""
    if not isinstance(hint, type):
        return None
    if issubclass(hint, BaseModel):
        return {
            str(info.serialization_alias or info.alias or name): info.is_required()
            for name, info in hint.model_fields.items()
        }
    if dataclasses.is_dataclass(hint):
        missing = dataclasses.MISSING
        return {
            f.name: f.default is missing and f.default_factory is missing
            for f in dataclasses.fields(hint)
        }
    return None


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
