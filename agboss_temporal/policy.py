"""How a run is unwound: the policy of a workflow, of a plugin, and the defaults below both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from temporalio.common import RetryPolicy

from agboss_temporal.core.contract import UNDO_OPTION_NAMES
from agboss_temporal.core.report import TRIGGERS, Trigger

DEFAULT_UNDO_OPTIONS: Final[Mapping[str, Any]] = {
    "start_to_close_timeout": timedelta(seconds=30),
    "schedule_to_close_timeout": timedelta(hours=1),
    "retry_policy": RetryPolicy(
        initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1)
    ),
}
"""What bounds an undo where nothing else is said: 30 s an attempt, any number of attempts, given
up after an hour, which also bounds the wait for a worker."""

_NOT_YET: Final[Mapping[str, tuple[Any, ...]]] = {
    "order": ("causal",),
    "on_exhausted": ("hold",),
    "approval_scope": ("all",),
    "on_parent_cancel": ("pause", "manual"),
}


class CompensationPolicy(BaseModel):
    """What starts an unwind, and how it goes. Authored with the code, never a run's input.

    A contract's own options win over the workflow's policy, and that over the plugin's.

    Attributes:
        triggers: What starts an unwind; after one that is not listed the effects stay.
        order: ``reverse-completion``, newest first, one after another.
        max_parallel: How many undos run at once where the order allows several.
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
    undo_options: Mapping[str, Any] = Field(default_factory=dict)
    total_timeout: timedelta | None = Field(default=None, gt=timedelta(0))
    on_exhausted: Literal["continue", "stop", "hold"] = "continue"
    approval_scope: Literal["declared", "all"] = "declared"
    on_parent_cancel: Literal["continue", "pause", "manual"] = "continue"
    uncommitted: Literal["fail", "allow"] = "fail"

    @field_validator("undo_options")
    @classmethod
    def _known_options(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        unknown = sorted(set(value) - UNDO_OPTION_NAMES)
        if unknown:
            raise ValueError(
                f"unknown undo options {', '.join(unknown)}; an undo takes "
                f"{', '.join(sorted(UNDO_OPTION_NAMES))}"
            )
        return value

    @model_validator(mode="after")
    def _honoured(self) -> CompensationPolicy:
        refused = [
            f"{name}={getattr(self, name)!r}"
            for name, values in _NOT_YET.items()
            if getattr(self, name) in values
        ]
        if refused:
            raise ValueError(f"not honoured yet by this version: {', '.join(refused)}")
        return self
