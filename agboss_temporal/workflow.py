"""What workflow code imports: the base class, ``unit``, ``join``, ``compensate``, ``report``."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from temporalio import workflow

from agboss_temporal.actions import Target, name_of
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import INSTALLED, Run
from agboss_temporal.scopes import join, unit
from agboss_temporal.unwind import compensate_now

__all__ = ["CompensatedWorkflow", "compensate", "join", "report", "unit"]

POLICY_ATTRIBUTE: Final = "compensation"


class CompensatedWorkflow:
    """Base class of a workflow that has a policy and refuses to run without the plugin.

    A subclass may set ``compensation`` to its own `CompensationPolicy`, or to ``None`` to be left
    alone altogether. Without it the plugin's policy holds.

    Raises:
        ConfigurationError: The worker lacks the plugin. The workflow task fails, nothing is lost,
            and a deploy with the plugin cures it.
    """

    compensation: ClassVar[CompensationPolicy | None]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuse to be made on a worker that lacks the plugin."""
        if workflow.in_workflow() and INSTALLED not in workflow.extern_functions():
            raise ConfigurationError(
                f"{cls.__name__} needs compensation, but its worker lacks CompensationPlugin; add "
                "it once, on the client that the worker is given: "
                "Client.connect(..., plugins=[CompensationPlugin()])"
            )
        return super().__new__(cls)

    def __agboss_policy__(self, default: CompensationPolicy) -> CompensationPolicy | None:
        """Return the policy of this class, ``None`` if it opts out."""
        found = getattr(type(self), POLICY_ATTRIBUTE, default)
        if found is not None and not isinstance(found, CompensationPolicy):
            raise ConfigurationError(policy_fault(type(self)))
        return found


def policy_fault(cls: type) -> str:
    """Say that a class's policy is not one."""
    return (
        f"{cls.__name__}.{POLICY_ATTRIBUTE} must be a CompensationPolicy, or None to opt out, not "
        f"{type(getattr(cls, POLICY_ATTRIBUTE)).__name__}"
    )


async def compensate(action: Target | None = None) -> CompensationReport:
    """Undo what is open in the current unit now, newest first, instead of at the run's end.

    What is undone here is not undone again by the run's own unwind. Actions that still run are
    asked to cancel and settle first; whoever awaits one of them sees its cancellation. A cancel of
    the caller that arrives meanwhile is delivered when the undos are done, and comes before
    `CompensationFailedError`; what was left behind is then in the report and in the run's end.

    Args:
        action: Undo only the executions of this action; by default all of the unit's.

    Returns:
        The report after it.

    Raises:
        CompensationFailedError: An undo gave up; the rest was undone all the same.
        ConfigurationError: Not in a workflow of a worker with the plugin.
    """
    return await compensate_now(Run.current(), None if action is None else name_of(action))


def report() -> CompensationReport:
    """Return what compensation has done in this run so far.

    Raises:
        ConfigurationError: Not in a workflow of a worker with the plugin.
    """
    return Run.current().report()
