"""The interceptor that a worker is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from temporalio.worker import (
    ActivityInboundInterceptor,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from agboss_temporal.core.budget import HistoryBudget
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.indexing import Index
from agboss_temporal.plan_input import DEFAULT_PAYLOAD_LIMIT
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import INSTALLED, Run
from agboss_temporal.telemetry.reporter import Reporter
from agboss_temporal.telemetry.tracing import activity_describer, workflow_spans
from agboss_temporal_interceptors.activity import CompensationActivityInbound
from agboss_temporal_interceptors.headers import Records
from agboss_temporal_interceptors.nesting import place
from agboss_temporal_interceptors.workflow import CompensationWorkflowInbound

if TYPE_CHECKING:
    from agboss_temporal.telemetry.spans import Spans


class CompensationInterceptor(Interceptor):
    """Records named calls and unwinds runs. `CompensationPlugin` makes and wires it.

    Args:
        contracts: What the worker knows.
        policy: Holds for workflows that have none of their own.
        unrecorded: What an action does that is not recorded: ``"log"``, or ``"fail"`` with a
            retryable error.
        compensated_children: Names of the workflow types that unwind themselves.
        payload_limit: Size in bytes above which an undo's context is not sent.
        trace_actions: Whether each action has a span of its own.
        search_attributes: Whether runs that unwind write search attributes.

    Attributes:
        budget: How much of a run's history an unwind may use.
    """

    def __init__(
        self,
        contracts: ContractTable,
        policy: CompensationPolicy | None = None,
        *,
        unrecorded: Literal["log", "fail"] = "log",
        compensated_children: frozenset[str] = frozenset(),
        payload_limit: int = DEFAULT_PAYLOAD_LIMIT,
        trace_actions: bool = False,
        search_attributes: bool = False,
    ) -> None:
        self._contracts = contracts
        self._policy = policy or CompensationPolicy()
        self._unrecorded: Literal["log", "fail"] = unrecorded
        self._compensated_children = compensated_children
        self._payload_limit = payload_limit
        self._trace_actions = trace_actions
        self._search_attributes = search_attributes
        self._describe = activity_describer()
        self.budget = HistoryBudget()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Put the activity side into the chain, once."""
        seen: Any = next
        while seen is not None:
            if isinstance(seen, CompensationActivityInbound):
                return next
            seen = getattr(seen, "next", None)
        return cast(ActivityInboundInterceptor, place(next, self._activity_side))

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """Return the workflow side, once for a worker."""
        if INSTALLED in input.unsafe_extern_functions:
            return None
        input.unsafe_extern_functions[INSTALLED] = lambda: True
        spans = workflow_spans(actions=self._trace_actions)
        make = partial(self._workflow_side, Records(), spans)

        class Inbound(WorkflowInboundInterceptor):
            def __init__(self, next: WorkflowInboundInterceptor) -> None:
                super().__init__(place(next, make))

        return Inbound

    def _activity_side(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return CompensationActivityInbound(next, self._contracts, self._unrecorded, self._describe)

    def _workflow_side(
        self,
        records: Records,
        spans: Callable[[], Spans] | None,
        next: WorkflowInboundInterceptor,
    ) -> WorkflowInboundInterceptor:
        run = Run(
            self._contracts,
            self._policy,
            self._payload_limit,
            self.budget,
            Reporter(None if spans is None else spans()),
            Index(self._search_attributes),
        )
        return CompensationWorkflowInbound(next, run, records, self._compensated_children)
