"""Does an undo fit what it will be given? Arity first, then types, as far as they are known."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel
from pydantic.fields import FieldInfo

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
    """List the positional parameters of an activity, without ``self``.

    A class that is an activity is called through its instance.
    """
    found = [
        p
        for p in inspect.signature(_called(fn)).parameters.values()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
    ]
    bound = isinstance(fn, type) or (found and found[0].name == "self")
    return found[1:] if bound else found


def _called(target: Any) -> Callable[..., Any]:
    return target.__call__ if isinstance(target, type) else target


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
    if _compat.workflow_definition(action) is not None:
        return True
    return inspect.signature(_called(action)).return_annotation is not inspect.Signature.empty


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
    given, wanted = _unrooted(given), _unrooted(wanted)
    if given is None or wanted is None or given is wanted or Any in (given, wanted):
        return "fits"
    choices = _choices(wanted)
    if len(choices) > 1 or len(_choices(given)) > 1:
        return _compare_unions(_choices(given), choices)
    if UndoContext in (given, wanted):
        return _compare_context(wanted if given is UndoContext else given)
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


def _compare_context(other: Any) -> Fit:
    shape = _shape(other)
    return "fits" if shape is None or (typing.get_origin(other) or other) is dict else "clashes"


def _compare_models(given: Any, wanted: Any) -> Fit:
    if isinstance(given, type) and isinstance(wanted, type) and issubclass(given, wanted):
        return "fits"
    has, reads = _written(given), _read(wanted)
    if has is None or reads is None:
        return "fits"
    if any(required and not names & has for names, required in reads):
        return "clashes"
    return "fits" if has <= frozenset().union(*(names for names, _ in reads)) else "narrower"


def _unrooted(hint: Any) -> Any:
    """Return what stands on the wire for a pydantic model that is only a name for its root."""
    if isinstance(hint, type) and issubclass(hint, RootModel):
        return _unrooted(hint.model_fields["root"].annotation)
    return hint


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
    if _written(base) is not None or base is dict:
        return "object"
    return None


def _written(hint: Any) -> frozenset[str] | None:
    """Name the JSON fields that a model is written with."""
    if not isinstance(hint, type):
        return None
    if issubclass(hint, BaseModel):
        computed = {info.alias or name for name, info in hint.model_computed_fields.items()}
        return frozenset(computed).union(
            info.serialization_alias or info.alias or name
            for name, info in hint.model_fields.items()
        )
    if dataclasses.is_dataclass(hint):
        return frozenset(f.name for f in dataclasses.fields(hint))
    return None


def _read(hint: type) -> list[tuple[frozenset[str], bool]] | None:
    """List the JSON names that each field of a model is read by, and whether it is required."""
    if issubclass(hint, BaseModel):
        by_name = any(
            hint.model_config.get(key) for key in ("populate_by_name", "validate_by_name")
        )
        return [
            (
                _aliases(info) | ({name} if by_name else set()) or frozenset({name}),
                info.is_required(),
            )
            for name, info in hint.model_fields.items()
        ]
    if dataclasses.is_dataclass(hint):
        missing = dataclasses.MISSING
        return [
            (frozenset({f.name}), f.default is missing and f.default_factory is missing)
            for f in dataclasses.fields(hint)
        ]
    return None


def _aliases(info: FieldInfo) -> frozenset[str]:
    alias = info.validation_alias or info.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    roots = [c.path[0] if isinstance(c, AliasPath) else c for c in choices]
    return frozenset(str(root) for root in roots if root is not None)


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
