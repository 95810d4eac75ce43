"""The plugin: given once or twice, missing, and refusing what cannot work (K1, R6, R7, S1, S8)."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Worker,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPlugin,
    CompensationPolicy,
    ContractError,
    action,
    declare,
)
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.interceptors import CompensationInterceptor
from tests.integration import wiring_flows as flows
from tests.support.acts import ACTIVITIES, Receipt, charge
from tests.support.harness import Harness, events_of, names, until, until_did, until_event


async def test_r7_given_to_client_and_worker_it_acts_once(harness: Harness) -> None:
    with pytest.warns(UserWarning, match="same plugin type"):
        done = await harness.run(flows.RecordedNamed, "fail", plugins=[CompensationPlugin()])
    assert done.world.count("refund:b") == 1
    assert done.events.count("MarkerRecorded") == 1


async def test_r7_beside_its_own_interceptor_it_acts_once(harness: Harness) -> None:
    harness.agrees = False  # A replay lacks the interceptor that the worker was given.
    own = CompensationInterceptor(ContractTable())
    async with harness.worker([flows.RecordedNamed], interceptors=[own]) as queue:
        done = await harness.finish(await harness.start(queue, flows.RecordedNamed.run, "ok"))
    assert done.status == "COMPLETED"


class WrapsErrors(WorkflowInboundInterceptor):
    """A worker's own interceptor that turns plain exceptions into failures."""

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        try:
            return await self.next.execute_workflow(input)
        except ValueError as err:
            raise ApplicationError("wrapped", type="Wrapped") from err


class Wrapping(Interceptor):
    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return WrapsErrors


async def test_what_a_workers_own_interceptor_raises_is_unwound(harness: Harness) -> None:
    done = await harness.run(flows.RaisesPlainly, interceptors=[Wrapping()])
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "Wrapped"
    assert done.world == ["charge:a", "refund:a"]
    harness._runs.clear()  # A replay would need the interceptor too.


async def test_a_child_that_opts_out_keeps_its_close_policy(harness: Harness) -> None:
    async with harness.worker([flows.ParentOfOptedOut, flows.OptedOutChild]) as queue:
        handle = await harness.start(queue, flows.ParentOfOptedOut.run)
        await until_event(handle, "ChildWorkflowExecutionStarted")
        await handle.terminate()
        child = harness.client.get_workflow_handle(handle.id + "-child")

        async def terminated() -> bool:
            return (await child.describe()).status == WorkflowExecutionStatus.TERMINATED

        await until(terminated)


async def test_s1_without_the_plugin_a_compensated_workflow_does_not_run(
    harness: Harness,
) -> None:
    async with harness.worker([flows.RecordedNamed], client=harness.plain) as queue:
        handle = await harness.start(queue, flows.RecordedNamed.run, "ok")
        await until_event(handle, "WorkflowTaskFailed")
        [failed] = [
            e.workflow_task_failed_event_attributes.failure.message
            for e in await events_of(handle)
            if e.HasField("workflow_task_failed_event_attributes")
        ][:1]
        assert "Client.connect(..., plugins=[CompensationPlugin()])" in failed
    async with harness.worker([flows.RecordedNamed], queue=queue):
        done = await harness.finish(handle)
    assert done.world[:2] == ["reserve:a", "charge:b"]


async def test_r6_an_unrecorded_action_is_noticed(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    """The workflow's worker lacks the plugin; the activity's worker has it."""
    done = await harness.run(flows.CallsLocally)
    assert done.status == "COMPLETED"
    assert "charge runs unrecorded" in caplog.text
    assert done.report.entries == ()


async def test_r6_an_unrecorded_action_can_be_refused(harness: Harness) -> None:
    strict = harness.with_(plugin=CompensationPlugin(unrecorded="fail"))
    async with (
        strict.worker([flows.PlainNamed], (), client=harness.plain) as queue,
        strict.worker((), queue=queue),
    ):
        handle = await harness.plain.start_workflow(
            flows.PlainNamed.run, "ok", id=f"strict-{queue}", task_queue=queue
        )
        await until_event(handle, "WorkflowExecutionFailed")
        failures = [
            e.activity_task_failed_event_attributes.failure.application_failure_info
            for e in await events_of(handle)
            if e.HasField("activity_task_failed_event_attributes")
        ]
    assert [(f.type, f.non_retryable) for f in failures] == [("UnrecordedAction", False)]


async def test_a_converter_that_hides_payloads_is_refused(plain_client: Client) -> None:
    class Hides(DefaultPayloadConverter):
        def from_payloads(self, payloads: Any, type_hints: Any = None) -> Any:
            return super().from_payloads(payloads, None)

    config = plain_client.config()
    config["plugins"] = [CompensationPlugin()]
    config["data_converter"] = DataConverter(payload_converter_class=Hides)
    with pytest.raises(ConfigurationError, match="RawValue"):
        Worker(Client(**config), task_queue="x", activities=ACTIVITIES)


async def test_a_policy_of_the_wrong_type_is_refused(harness: Harness) -> None:
    with pytest.raises(ConfigurationError, match=r"WrongPolicy\.compensation must be"):
        Worker(harness.client, task_queue="x", workflows=[WrongPolicy])


@workflow.defn
class WrongPolicy(CompensatedWorkflow):
    compensation = "newest first"  # type: ignore[assignment]

    @workflow.run
    async def run(self) -> None: ...


async def test_the_plugins_policy_holds_where_the_class_has_none(harness: Harness) -> None:
    plugin = CompensationPlugin(policy=CompensationPolicy(triggers=frozenset({"run-cancel"})))
    done = await harness.with_(plugin=plugin).run(flows.RecordedNamed, "fail")
    assert not [e for e in done.world if e.startswith("refund")]


@dataclass
class Invoice:
    number: int


@dataclass
class Other:
    completely: str


@activity.defn
async def undo_invoice(invoice: Invoice) -> None: ...


@activity.defn
async def undo_other(other: Other) -> None: ...


def build(client: Client, activities: list[Callable[..., Any]], **options: Any) -> Worker:
    return Worker(
        client, task_queue=f"never-run-{uuid.uuid4().hex}", activities=activities, **options
    )


async def test_s8_every_fault_of_a_worker_is_told_at_once(harness: Harness) -> None:
    @action(compensate_with="nowhere")
    @activity.defn
    async def first() -> Invoice:
        return Invoice(1)

    @action(compensate_with="undo_other")
    @activity.defn
    async def second() -> Invoice:
        return Invoice(2)

    @action(compensate_with="charge")
    @activity.defn
    async def third() -> Invoice:
        return Invoice(3)

    with pytest.raises(ContractError) as caught:
        build(harness.client, [first, second, third, undo_other, *ACTIVITIES])
    message = str(caught.value)
    assert "[action.undo-not-registered] first" in message
    assert "[action.undo-input] second" in message
    assert "[action.undo-is-undoable] third" in message
    assert message.count("test_wiring.py:") == 4
    assert len(caught.value.faults) == 4


async def test_an_undo_may_run_elsewhere_if_that_is_said(harness: Harness) -> None:
    @action(compensate_with="undo_afar", undo_options={"task_queue": "afar"})
    @activity.defn
    async def far_away() -> Invoice:
        return Invoice(1)

    declare("undo_declared")

    @action(compensate_with="undo_declared")
    @activity.defn
    async def declared() -> Invoice:
        return Invoice(1)

    build(harness.client, [far_away, declared])


async def test_a_worker_of_workflows_only_is_not_held_to_the_undos(harness: Harness) -> None:
    build(harness.client, [], workflows=[flows.RecordedNamed])


async def test_a_committer_that_is_not_registered_is_a_warning(harness: Harness) -> None:
    @action(compensate_with=undo_invoice, committed_by="somewhere_else")
    @activity.defn
    async def waits() -> Invoice:
        return Invoice(1)

    with pytest.warns(UserWarning, match=r"\[action.committer-not-registered\] waits"):
        build(harness.client, [waits, undo_invoice])


async def test_two_workers_may_use_one_name_differently(harness: Harness) -> None:
    """Names belong to task queues, not to processes."""

    def make(undo: Any) -> Any:
        @action(compensate_with=undo)
        @activity.defn(name="same_name")
        async def same_name() -> Any: ...

        return same_name

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(harness.client, [make(undo_invoice), undo_invoice])
        build(harness.client, [make(undo_other), undo_other])


async def test_a_declaration_that_contradicts_the_code_is_a_conflict(harness: Harness) -> None:
    import tests.integration.conflicting as conflicting

    with pytest.raises(ContractError, match=r"\[action.conflicting-contract\] contradicted"):
        build(harness.client, [conflicting.contradicted, conflicting.undo_one])


async def test_the_decorated_activity_is_the_same_object(harness: Harness) -> None:
    async def plain(item: str) -> Receipt:
        return Receipt(item)

    marked = activity.defn(plain)
    assert action(compensate_with="refund")(marked) is plain
    assert charge.__name__ == "charge"
    async with harness.worker([flows.RecordedWaits]) as queue:
        handle = await harness.start(queue, flows.RecordedWaits.run)
        await until_did(handle, "charge:before")
        assert "ActivityTaskScheduled" in names(await events_of(handle))
        await handle.terminate()
