"""The plugin: given once, on the client, it makes every worker of that client record and unwind."""

from __future__ import annotations

import asyncio
import dataclasses
import warnings
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Literal

from temporalio.converter import DataConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    Interceptor,
    PatchActivationInput,
    ReplayerConfig,
    Worker,
    WorkerConfig,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from agboss_temporal import _compat, registry, search_attributes
from agboss_temporal.actions import check_input
from agboss_temporal.core.contract import Contract, ContractTable, Fault
from agboss_temporal.exceptions import ConfigurationError, ContractError
from agboss_temporal.interceptors import CompensationInterceptor
from agboss_temporal.plan_input import payload_limit
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.recovery_workflow import RecoveryWorkflow, VersionedRecoveryWorkflow
from agboss_temporal.workflow import POLICY_ATTRIBUTE, CompensatedWorkflow, policy_fault
from agboss_temporal_interceptors.capture import supported_by

_OWN_PATCHES: Final = "agboss-"

_PASSED_THROUGH: Final = ("agboss_temporal", "agboss_temporal_interceptors")
"""Modules that the sandbox must not import again: workflow code and interceptors share them."""


class CompensationPlugin(SimplePlugin):
    """Makes workers record actions and unwind runs.

    Give it to the client; workers made from that client inherit it. Given again to a worker, or
    beside a `CompensationInterceptor`, it acts once. A ``Replayer`` needs it too.

    Args:
        policy: Holds for every workflow that has no policy of its own.
        unrecorded: What an action does on a worker of this client when it is not recorded,
            because the workflow's worker lacks the plugin or calls it as a local activity:
            ``"log"`` (and count), or ``"fail"`` with a retryable error, which a deploy cures.
        trace_actions: Whether each action has a span of its own, ``Action:<name>``, to which that
            of its undo is linked. Takes effect where unwinds are traced at all: with a tracer
            provider of ``temporalio.contrib.opentelemetry.create_tracer_provider``.
        search_attributes: Whether runs that unwind write ``CompensationStatus`` and
            ``CompensationOpen``, at the price of some events; may be changed while runs are open.

    Raises:
        ContractError: When a worker is constructed, with everything that its declarations say
            wrongly.
        ConfigurationError: When a worker is constructed whose SDK, payload converter or policies
            cannot work with it; when it is run, if its namespace lacks the search attributes.
    """

    def __init__(
        self,
        *,
        policy: CompensationPolicy | None = None,
        unrecorded: Literal["log", "fail"] = "log",
        trace_actions: bool = False,
        search_attributes: bool = False,
    ) -> None:
        super().__init__("agboss.CompensationPlugin", workflow_runner=_pass_through)
        self._policy = policy or CompensationPolicy()
        self._unrecorded: Literal["log", "fail"] = unrecorded
        self._trace_actions = trace_actions
        self._search_attributes = search_attributes

    @property
    def policy(self) -> CompensationPolicy:
        """What holds for every workflow that has no policy of its own."""
        return self._policy

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Check the worker's declarations and give it the interceptor."""
        config = super().configure_worker(config)
        activities = list(config.get("activities") or [])
        workflows = list(config.get("workflows") or [])
        converter = config["client"].data_converter
        _check_setup(workflows, converter)
        table, faults = registry.select(activities, workflows)
        faults += _check_registered(activities, workflows)
        if faults:
            raise ContractError(faults)
        config["interceptors"] = self._wired(
            config.get("interceptors") or [], table, workflows, converter
        )
        deployment = config.get("deployment_config")
        versioned = deployment is not None and deployment.use_worker_versioning
        config["workflows"] = _with_recovery(workflows, versioned=versioned)
        config["patch_activation_callback"] = _always_ours(config.get("patch_activation_callback"))
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Run a worker, unless its namespace lacks the search attributes that it would write."""
        fault = None
        if self._search_attributes and worker.config(active_config=True).get("workflows"):
            fault = await search_attributes.fault(worker.client)
        if fault is None:
            return await super().run_worker(worker, next)
        # `async with` waits for the end of a worker, which one that never starts does not have.
        stopping = asyncio.create_task(worker.shutdown())
        await asyncio.sleep(0)
        await super().run_worker(worker, next)
        await stopping
        raise fault

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Give a replayer the same interceptor as a worker of these workflows."""
        config = super().configure_replayer(config)
        workflows = list(config.get("workflows") or [])
        converter = config.get("data_converter") or DataConverter.default
        _check_setup(workflows, converter)
        table, faults = registry.select([], workflows)
        if faults:
            raise ContractError(faults)
        config["interceptors"] = self._wired(
            config.get("interceptors") or [], table, workflows, converter
        )
        config["workflows"] = _with_recovery(workflows)
        return config

    def _wired(
        self,
        interceptors: Iterable[Interceptor],
        table: ContractTable,
        workflows: list[type],
        converter: DataConverter,
    ) -> list[Interceptor]:
        wired = list(interceptors)
        if any(isinstance(i, CompensationInterceptor) for i in wired):
            return wired
        ours = CompensationInterceptor(
            table,
            self._policy,
            unrecorded=self._unrecorded,
            compensated_children=_compensated(table, workflows),
            payload_limit=payload_limit(converter),
            trace_actions=self._trace_actions,
            search_attributes=self._search_attributes,
        )
        # First: it sees how a run ends after the worker's other interceptors have had their say,
        # and a call as they send it. Those of the client (tracing) stay outside of it.
        return [ours, *wired]


def _with_recovery(workflows: list[type], *, versioned: bool = False) -> list[type]:
    """Register the workflow that undoes for other runs where there are workflows at all, once."""
    if not workflows or any(issubclass(each, RecoveryWorkflow) for each in workflows):
        return workflows
    return [*workflows, VersionedRecoveryWorkflow if versioned else RecoveryWorkflow]


def _pass_through(runner: WorkflowRunner | None) -> WorkflowRunner:
    runner = runner or SandboxedWorkflowRunner()
    if isinstance(runner, SandboxedWorkflowRunner):
        restrictions = runner.restrictions.with_passthrough_modules(*_PASSED_THROUGH)
        return dataclasses.replace(runner, restrictions=restrictions)
    return runner


def _always_ours(
    theirs: Callable[[PatchActivationInput], bool] | None,
) -> Callable[[PatchActivationInput], bool] | None:
    """Keep a user's callback from switching off the markers that unwinding depends on."""
    if theirs is None:
        return None

    def activate(input: PatchActivationInput) -> bool:
        return input.patch_id.startswith(_OWN_PATCHES) or theirs(input)

    return activate


def _check_setup(workflows: list[type], converter: DataConverter) -> None:
    faults = [
        f"this temporalio lacks {name}, which this version of agboss-temporal needs; "
        "install a version that its README lists"
        for name in _compat.verify()
    ]
    if not faults and not supported_by(converter.payload_converter):
        faults.append(
            f"payload converter {converter.payload_converter_class.__name__} does not honour the "
            "type hint RawValue, so results cannot be recorded as they are; build on "
            "CompositePayloadConverter or return the raw value for that hint"
        )
    faults += [
        policy_fault(cls)
        for cls in workflows
        if issubclass(cls, CompensatedWorkflow)
        and not isinstance(getattr(cls, POLICY_ATTRIBUTE, None), (CompensationPolicy, type(None)))
    ]
    if faults:
        raise ConfigurationError("\n".join(faults))


def _compensated(table: ContractTable, workflows: list[type]) -> frozenset[str]:
    known = {c.action for c in table if c.kind == "workflow" and c.is_action}
    for cls in workflows:
        definition = _compat.workflow_definition(cls)
        opted_in = issubclass(cls, CompensatedWorkflow) and (
            getattr(cls, POLICY_ATTRIBUTE, True) is not None
        )
        if definition and definition.name and opted_in:
            known.add(definition.name)
    return frozenset(known)


def _check_registered(activities: list[Callable[..., Any]], workflows: list[type]) -> list[Fault]:
    """Find out whether the undos of what a worker registers are there, and fit."""
    faults: list[Fault] = []
    callables: dict[str | None, Callable[..., Any]] = {}
    for fn in activities:
        definition = _compat.activity_definition(fn)
        if definition is not None:
            callables[definition.name] = fn
    names = {d.name for d in map(_compat.workflow_definition, workflows) if d is not None}
    for target in [*activities, *workflows]:
        contract = registry.contract_of(target)
        if contract is None:
            continue
        undo = contract.undo
        if undo in callables:
            faults += check_input(contract, target, callables[undo])
        elif undo is not None and not _is_elsewhere(contract, undo, callables):
            faults.append(
                contract.fault(
                    "undo-not-registered",
                    f"its undo {undo!r} is not registered on this worker; register it, or say "
                    "where it runs with undo_options={'task_queue': ...} or declare()",
                )
            )
        _warn_of_committer(contract, {*callables, *names})
    return faults


def _is_elsewhere(contract: Contract, undo: str, callables: dict[str | None, Any]) -> bool:
    dynamic = None in callables
    return (
        dynamic or contract.undo_options.get("task_queue") is not None or registry.is_declared(undo)
    )


def _warn_of_committer(contract: Contract, names: set[str | None]) -> None:
    committer = contract.committer
    if committer is None or committer in names or None in names or registry.is_declared(committer):
        return
    fault = contract.fault(
        "committer-not-registered",
        f"its committer {committer!r} is not registered on this worker; if it runs elsewhere, "
        "declare() it",
    )
    warnings.warn(str(fault), UserWarning, stacklevel=2)
