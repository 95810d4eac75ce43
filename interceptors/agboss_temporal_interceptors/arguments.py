"""The arguments of an action as recorded payloads, kept for an undo that needs them (rule K4).

They are encoded when the call is scheduled, with the converter and the context that the SDK uses,
so that what the workflow does to the objects afterwards changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.worker import StartActivityInput, StartChildWorkflowInput


def of_activity(input: StartActivityInput) -> tuple[Payload, ...]:
    """Encode the arguments of an activity as the SDK will."""
    info = workflow.info()
    return _encode(
        input.args,
        ActivitySerializationContext(
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            workflow_type=info.workflow_type,
            activity_type=input.activity,
            activity_id=input.activity_id,
            activity_task_queue=input.task_queue or info.task_queue,
            is_local=False,
        ),
    )


def of_child(input: StartChildWorkflowInput) -> tuple[Payload, ...]:
    """Encode the arguments of a child workflow as the SDK will."""
    namespace = workflow.info().namespace
    return _encode(
        input.args, WorkflowSerializationContext(namespace=namespace, workflow_id=input.id)
    )


def _encode(args: Sequence[Any], context: SerializationContext) -> tuple[Payload, ...]:
    converter = workflow.payload_converter()
    if isinstance(converter, WithSerializationContext):
        converter = converter.with_context(context)
    return tuple(converter.to_payloads(args)) if args else ()
