"""One workflow instance of the SDK, driven by hand: no worker, no server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payloads
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.common import MetricMeter, Priority, TypedSearchAttributes
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.worker._workflow_instance import (
    UnsandboxedWorkflowRunner,
    WorkflowInstanceDetails,
    _WorkflowLogicFlag,
)

from agboss_temporal import registry
from agboss_temporal.interceptors import CompensationInterceptor
from agboss_temporal.run import Run
from agboss_temporal_interceptors.workflow import CompensationWorkflowInbound
from tests.support.acts import ACTIVITIES

CONVERTER = DataConverter.default


@dataclass
class Seen:
    """What the library has done with a run so far."""

    entries: list[tuple[str, str]]
    unwinds: list[list[str | None]]
    ending: object
    also_failed: list[str]


@dataclass
class Stage:
    """Plays the part of the server and of the SDK's core for one run.

    Args:
        flow: The workflow class.
        argument: What it is started with.
        flags: Workflow logic flags that the SDK works with.
    """

    flow: type
    argument: str = ""
    flags: frozenset[_WorkflowLogicFlag] = frozenset()
    pending: dict[int, str] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    _events: int = 0

    def __post_init__(self) -> None:
        table, faults = registry.select(ACTIVITIES, [self.flow])
        assert not faults
        externs: dict[str, Any] = {"__temporal_get_metric_meter": lambda: MetricMeter.noop}
        interceptor = CompensationInterceptor(table)
        ours = interceptor.workflow_interceptor_class(WorkflowInterceptorClassInput(externs))
        assert ours is not None
        definition = workflow._Definition.must_from_class(self.flow)
        details = WorkflowInstanceDetails(
            payload_converter_factory=CONVERTER._new_payload_converter,
            failure_converter_class=CONVERTER.failure_converter_class,
            interceptor_classes=[_watcher(self.started), ours],
            defn=definition,
            info=_info(definition.name or ""),
            randomness_seed=7,
            extern_functions=externs,
            disable_eager_activity_execution=True,
            worker_level_failure_exception_types=[],
            patch_activation_callback=None,
            last_completion_result=Payloads(),
            last_failure=None,
            default_workflow_logic_flags=self.flags,
        )
        self.instance: Any = UnsandboxedWorkflowRunner().create_instance(details)

    @property
    def run(self) -> Run:
        """The library's state of the run."""
        found: Run = self._ours()._run
        return found

    def seen(self) -> Seen:
        """Take a picture of what the library has done."""
        return Seen(
            entries=[(entry.key, str(entry.state)) for entry in self.run.ledger],
            unwinds=[[planned.verdict for planned in each.plan] for each in self.run.unwinds],
            ending=self._ours()._endings._ending,
            also_failed=list(self.run.also_failed),
        )

    async def start(self) -> None:
        """Start the run."""
        job = WorkflowActivationJob()
        job.initialize_workflow.workflow_type = "flow"
        job.initialize_workflow.randomness_seed = 7
        job.initialize_workflow.arguments.extend(_payloads(self.argument))
        await self.activate(job)

    async def complete(self, name: str, result: Any = None) -> None:
        """Complete the oldest activity in flight of a name."""
        job = WorkflowActivationJob()
        job.resolve_activity.seq = self._oldest(name)
        job.resolve_activity.result.completed.result.CopyFrom(_payloads(result)[0])
        await self.activate(job)

    async def fail(self, name: str) -> None:
        """Fail the oldest activity in flight of a name for good."""
        job = WorkflowActivationJob()
        job.resolve_activity.seq = self._oldest(name)
        failure = job.resolve_activity.result.failed.failure
        failure.activity_failure_info.activity_type.name = name
        error = ApplicationError("it went wrong", type="Boom", non_retryable=True)
        CONVERTER.failure_converter.to_failure(error, CONVERTER.payload_converter, failure.cause)
        await self.activate(job)

    async def cancel(self) -> None:
        """Request that the run is cancelled."""
        job = WorkflowActivationJob()
        job.cancel_workflow.SetInParent()
        await self.activate(job)

    async def signal(self, name: str) -> None:
        """Send a signal."""
        job = WorkflowActivationJob()
        job.signal_workflow.signal_name = name
        await self.activate(job)

    async def update(self, name: str) -> None:
        """Send an update."""
        job = WorkflowActivationJob()
        job.do_update.id = job.do_update.protocol_instance_id = job.do_update.name = name
        job.do_update.run_validator = True
        await self.activate(job)

    async def evict(self) -> WorkflowActivationCompletion:
        """Remove the run from the cache. The SDK raises if a task of it is left."""
        job = WorkflowActivationJob()
        job.remove_from_cache.SetInParent()
        return await self.activate(job)

    async def activate(self, job: WorkflowActivationJob) -> WorkflowActivationCompletion:
        """Give the instance one job, on a thread of its own as a worker does."""
        self._events += 3
        act = WorkflowActivation(run_id="run", history_length=self._events, jobs=[job])
        act.timestamp.FromSeconds(1_700_000_000 + self._events)
        loop = asyncio.get_running_loop()
        done: WorkflowActivationCompletion = await loop.run_in_executor(
            None, self.instance.activate, act
        )
        assert not done.HasField("failed"), done.failed
        for command in done.successful.commands:
            if command.HasField("schedule_activity"):
                self.pending[command.schedule_activity.seq] = (
                    command.schedule_activity.activity_type
                )
            elif command.HasField("request_cancel_activity"):
                self.cancels.append(command.request_cancel_activity.seq)
        return done

    def _oldest(self, name: str) -> int:
        seq = min(seq for seq, pending in self.pending.items() if pending == name)
        del self.pending[seq]
        return seq

    def _ours(self) -> Any:
        found = self.instance._inbound
        while not isinstance(found, CompensationWorkflowInbound):
            found = found.next
        return found


def _watcher(started: list[str]) -> type[WorkflowInboundInterceptor]:
    """Make an interceptor that stands between the library and the SDK and notes what is started."""

    class Outbound(WorkflowOutboundInterceptor):
        def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
            started.append(input.activity)
            return super().start_activity(input)

    class Inbound(WorkflowInboundInterceptor):
        def init(self, outbound: WorkflowOutboundInterceptor) -> None:
            super().init(Outbound(outbound))

    return Inbound


def _payloads(value: Any) -> list[Any]:
    return list(CONVERTER.payload_converter.to_payloads([value]))


def _info(workflow_type: str) -> workflow.Info:
    then = datetime.fromtimestamp(1_700_000_000, tz=UTC)
    return workflow.Info(
        attempt=1,
        continued_run_id=None,
        cron_schedule=None,
        execution_timeout=None,
        first_execution_run_id="run",
        headers={},
        namespace="default",
        original_execution_run_id="run",
        parent=None,
        root=None,
        priority=Priority.default,
        raw_memo={},
        retry_policy=None,
        run_id="run",
        run_timeout=None,
        search_attributes={},
        start_time=then,
        workflow_start_time=then,
        task_queue="queue",
        task_timeout=timedelta(seconds=10),
        typed_search_attributes=TypedSearchAttributes.empty,
        workflow_id="workflow",
        workflow_type=workflow_type,
    )
