"""The workflow side: what is intercepted, and to whom it is handed."""

from __future__ import annotations

from typing import Any, NoReturn

from temporalio import workflow
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    HandleSignalInput,
    HandleUpdateInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from agboss_temporal.core.report import CompensationReport
from agboss_temporal.run import Run
from agboss_temporal_interceptors.calls import Recorder
from agboss_temporal_interceptors.classify import without_joins
from agboss_temporal_interceptors.continuing import adopt
from agboss_temporal_interceptors.endings import Endings
from agboss_temporal_interceptors.handlers import Handlers
from agboss_temporal_interceptors.headers import Records

REPORT_QUERY = "agboss.compensation"


class CompensationWorkflowInbound(WorkflowInboundInterceptor):
    """Watches how a run, and each of its signal handlers, ends."""

    def __init__(
        self,
        next: WorkflowInboundInterceptor,
        run: Run,
        records: Records,
        compensated_children: frozenset[str],
    ) -> None:
        super().__init__(next)
        self._records = records
        self._run = run
        self._handlers = Handlers(run)
        self._endings = Endings(run, self._handlers)
        self._compensated_children = compensated_children

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Put the recorder in the way of outgoing calls and answer the query."""

        def report() -> CompensationReport:
            return self._run.report()

        recorder = Recorder(self._run, self._records, self._compensated_children)
        super().init(CompensationWorkflowOutbound(outbound, self._run, recorder))
        workflow.set_query_handler(REPORT_QUERY, report)
        adopt(self._run, outbound.info())

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Run the workflow; unwind it if it ends in a way that calls for it."""
        self._run.enter()
        if self._run.policy is None:
            return await without_joins(self.next.execute_workflow(input))
        self._run.observer.main_begins()
        return await self._endings.of_run(self.next.execute_workflow(input))

    async def handle_signal(self, input: HandleSignalInput) -> None:
        """Run a signal handler; its failure ends the run, so it unwinds the run first."""
        self._run.enter()
        if self._run.policy is None:
            return await without_joins(self.next.handle_signal(input))
        return await self._endings.of_signal(input.signal, self.next.handle_signal(input))

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        """Run an update handler; its failure undoes what it did."""
        self._run.enter()
        if self._run.policy is None:
            return await without_joins(self.next.handle_update_handler(input))
        body = self.next.handle_update_handler(input)
        return await self._handlers.of_update(input.id, input.update, body)


class CompensationWorkflowOutbound(WorkflowOutboundInterceptor):
    """Hands the calls of a run to its recorder."""

    def __init__(self, next: WorkflowOutboundInterceptor, run: Run, recorder: Recorder) -> None:
        super().__init__(next)
        self._run = run
        self._recorder = recorder

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        """Start an activity, recorded if a contract names it."""
        if self._run.policy is None:
            return self.next.start_activity(input)
        handle: workflow.ActivityHandle[Any] = self._recorder.start_activity(
            input, self.next.start_activity
        )
        return handle

    async def start_child_workflow(
        self, input: StartChildWorkflowInput
    ) -> workflow.ChildWorkflowHandle[Any, Any]:
        """Start a child workflow, recorded if a contract names it."""
        if self._run.policy is None:
            return await self.next.start_child_workflow(input)
        handle: workflow.ChildWorkflowHandle[Any, Any] = await self._recorder.start_child(
            input, self.next.start_child_workflow
        )
        return handle

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        """Start a local activity; it counts for keys, but history cannot record it."""
        self._run.next_key()
        return self.next.start_local_activity(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        """Note what the run continues with; its open entries are added when it has settled."""
        try:
            self.next.continue_as_new(input)
        except workflow.ContinueAsNewError as err:
            self._run.continuing[err] = input
            raise
