"""How a run is unwound: the policy of a workflow, of a plugin, and the defaults below both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails

from agboss_temporal.core.contract import UNDO_OPTION_NAMES
from agboss_temporal.core.report import TRIGGERS, Trigger
from agboss_temporal.undo_options import FrozenOptions, wrong_values

_NOT_YET: Final[Mapping[str, tuple[Any, ...]]] = {
    "on_exhausted": ("hold",),
    "approval_scope": ("all",),
    "on_parent_cancel": ("pause", "manual"),
}


class CompensationPolicy(BaseModel):
    """What starts an unwind, and how it goes. Authored with the code, never a run's input.

    A contract's own options win over the workflow's policy, and that over the plugin's.

    Attributes:
        triggers: What starts an unwind; after one that is not listed the effects stay.
        order: ``reverse-completion``, newest first, one after another; or ``causal``, where an undo
            waits only for the undos of actions that started after its own action had completed, so
            that what overlapped in time is undone together.
        max_parallel: How many undos run at once under ``causal``.
        undo_options: Options of every undo, by the names of temporalio's ``ActivityConfig``.
        total_timeout: Bounds a whole unwind, by shrinking each undo's schedule-to-close: the undo
            that runs when it ends is ``failed``, the rest ``not_run``. No timer is used.
        on_exhausted: After an undo that gave up, ``continue`` with the rest or ``stop``.
        approval_scope: Which undos need an approval; ``declared``, those whose contract says so.
        on_parent_cancel: What a cancel that arrives during an unwind does; ``continue``, nothing.
        uncommitted: A run that returns with an action whose committer never ran is a ``fail`` ure,
            or it is ``allow`` ed and sealed.

    Raises:
        pydantic.ValidationError: A value is wrong, unknown, or not honoured yet by this version.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    triggers: frozenset[Trigger] = frozenset(TRIGGERS)  # type: ignore[arg-type]
    order: Literal["reverse-completion", "causal"] = "reverse-completion"
    max_parallel: int = Field(default=20, ge=1)
    undo_options: Mapping[str, Any] = Field(default_factory=dict, validate_default=True)
    total_timeout: timedelta | None = Field(default=None, gt=timedelta(0))
    on_exhausted: Literal["continue", "stop", "hold"] = "continue"
    approval_scope: Literal["declared", "all"] = "declared"
    on_parent_cancel: Literal["continue", "pause", "manual"] = "continue"
    uncommitted: Literal["fail", "allow"] = "fail"

    @field_validator("undo_options")
    @classmethod
    def _usable_options(cls, value: Mapping[str, Any]) -> FrozenOptions:
        problems = wrong_values(value)
        unknown = sorted(set(value) - UNDO_OPTION_NAMES)
        if unknown:
            problems.append(
                f"unknown undo options {', '.join(unknown)}; an undo takes "
                f"{', '.join(sorted(UNDO_OPTION_NAMES))}"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return FrozenOptions(value)

    @field_serializer("undo_options")
    def _as_dict(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return dict(value)

    @model_validator(mode="wrap")
    @classmethod
    def _honoured(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Name what is not honoured beside all other faults, which an after-validator cannot."""
        given = data if isinstance(data, Mapping) else {}
        refused = [
            f"{name}={given[name]!r}"
            for name, values in _NOT_YET.items()
            if name in given and given[name] in values
        ]
        problem = ValueError(f"not honoured yet by this version: {', '.join(refused)}")
        try:
            found = handler(data)
        except ValidationError as err:
            if not refused:
                raise
            faults = [*map(_detail, err.errors()), _own_fault(problem, data)]
            raise ValidationError.from_exception_data(err.title, faults) from err
        if refused:
            raise problem
        return found


def _detail(error: ErrorDetails) -> InitErrorDetails:
    return InitErrorDetails(
        type=error["type"], loc=error["loc"], input=error["input"], ctx=error.get("ctx", {})
    )


def _own_fault(problem: ValueError, data: Any) -> InitErrorDetails:
    return InitErrorDetails(type="value_error", loc=(), input=data, ctx={"error": problem})
