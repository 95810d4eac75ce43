"""What a recorded failure is, as the SDK would raise it in the workflow."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.failure.v1 import Failure

from agboss_temporal.core import outcome

_ERRORS: Final = {
    "activity_failure_info": "ActivityError",
    "terminated_failure_info": "TerminatedError",
    "server_failure_info": "ServerError",
    "child_workflow_execution_failure_info": "ChildWorkflowError",
    "nexus_operation_execution_failure_info": "NexusOperationError",
    "nexus_handler_failure_info": "HandlerError",
}


_ENVELOPES: Final = ("activity_failure_info", "child_workflow_execution_failure_info")


def failure_of(failure: Failure) -> outcome.Failure:
    """Say what a failure is: the error that the awaiting code finds as the cause.

    A child that failed because its own call did is not that call: only the type, which reports
    name, is taken from inside.
    """
    found = _itself(failure)
    inner = failure
    while inner.WhichOneof("failure_info") in _ENVELOPES and inner.HasField("cause"):
        inner = inner.cause
    return found if inner is failure else replace(found, type=_itself(inner).type)


def _itself(failure: Failure) -> outcome.Failure:
    info = failure.WhichOneof("failure_info")
    if info == "application_failure_info":
        return outcome.Failure("application", failure.application_failure_info.type)
    if info == "timeout_failure_info":
        return timeout(failure.timeout_failure_info.timeout_type)
    if info == "canceled_failure_info":
        return CANCELLED
    refused = info == "server_failure_info" and failure.message.startswith(outcome.REFUSED_RESULT)
    return outcome.Failure("other", _ERRORS.get(info or "", ""), refused_result=refused)


def timeout(kind: TimeoutType.ValueType) -> outcome.Failure:
    """Say what a timeout is."""
    name = TimeoutType.Name(kind).removeprefix("TIMEOUT_TYPE_").lower().replace("_", "-")
    waited = kind == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
    return outcome.Failure("timeout", f"{name} timeout", never_started=waited)


CANCELLED: Final = outcome.Failure("cancelled", "CancelledError")
TERMINATED: Final = outcome.Failure("other", "TerminatedError")
REFUSED: Final = outcome.Failure("already_started", "WorkflowAlreadyStartedError")
"""A child that was not started, because another one of its id runs."""
