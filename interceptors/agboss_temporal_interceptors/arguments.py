"""The arguments of an action as recorded payloads, kept for an undo that needs them (rule K4).

They are encoded when the call is scheduled, with the converter and the context that the SDK uses,
so that what the workflow does to the objects afterwards changes nothing.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadConverter,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.worker import StartActivityInput, StartChildWorkflowInput


def of_call(input: StartActivityInput | StartChildWorkflowInput) -> tuple[Payload, ...]:
    """Encode the arguments of a call as the SDK will."""
    return tuple(converter_of(input).to_payloads(input.args)) if input.args else ()


def converter_of(input: StartActivityInput | StartChildWorkflowInput) -> PayloadConverter:
    """Return the payload converter with the context that the SDK gives it for a call."""
    converter = workflow.payload_converter()
    if not isinstance(converter, WithSerializationContext):
        return converter
    info = workflow.info()
    if isinstance(input, StartActivityInput):
        return converter.with_context(
            ActivitySerializationContext(
                namespace=info.namespace,
                workflow_id=info.workflow_id,
                workflow_type=info.workflow_type,
                activity_type=input.activity,
                activity_id=input.activity_id,
                activity_task_queue=input.task_queue or info.task_queue,
                is_local=False,
            )
        )
    return converter.with_context(
        WorkflowSerializationContext(namespace=info.namespace, workflow_id=input.id)
    )
