"""Scenario rows about continuing as new, and about histories that grow large."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from agboss_temporal.core import wire
from tests.integration import case_flows as flows
from tests.integration import continue_flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.chains import carried_bytes, finish_chain, runs_of
from tests.support.harness import Harness, events_of, names, until

ACTS = [*ACTIVITIES, *flows.CASE_ACTS]


class Rewraps(WorkflowInboundInterceptor):
    """Turns whatever it takes for an error into one of its own."""

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        try:
            return await super().execute_workflow(input)
        except Exception as err:
            raise ApplicationError("rewrapped", type="Rewrapped") from err


class Generic(Interceptor):
    """An interceptor that knows nothing of ours."""

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        return Rewraps


async def test_h3_a_generic_interceptor_leaves_continuing_alone(harness: Harness) -> None:
    generations = continue_flows.Generations
    async with harness.worker([generations], interceptors=[Generic()]) as queue:
        handle = await harness.start(queue, generations.run, "fail", 1)
        done = await harness.finish(harness.client.get_workflow_handle(handle.id))
    first, _ = await finish_chain(harness, handle, generations)
    assert names(await events_of(first))[-1] == "WorkflowExecutionContinuedAsNew"
    assert done.world == ["charge:g0", "charge:g1", "refund:g1", "refund:g0"]
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "Rewrapped"


async def test_h7_what_was_open_three_runs_ago_is_undone_with_its_own_arguments(
    harness: Harness,
) -> None:
    async with harness.worker([flows.Renews], ACTS) as queue:
        handle = await harness.start(queue, flows.Renews.run, 3)
        done = await harness.finish(harness.client.get_workflow_handle(handle.id))
    runs = await finish_chain(harness, handle, flows.Renews)
    assert len(runs) == 4
    assert done.world == ["book:original:7", "unbook:original:7"]
    assert len({await carried_bytes(run) for run in runs[1:]}) == 1


async def test_r4_acting_until_continue_as_new_is_suggested_loses_nothing(
    harness: Harness,
) -> None:
    async with harness.worker([flows.UntilSuggested], ACTS) as queue:
        handle = await harness.start(queue, flows.UntilSuggested.run)
        done = await harness.finish(harness.client.get_workflow_handle(handle.id))
    assert len(await finish_chain(harness, handle, flows.UntilSuggested)) == 2
    forward = [e for e in done.world if e.startswith("store")]
    assert len(forward) > 3
    assert done.world == forward + [e.replace("store", "refund") for e in reversed(forward)]


@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_r5_large_arguments_stay_out_of_every_record(harness: Harness, how: str) -> None:
    async with harness.worker([flows.StoresLarge], ACTS) as queue:
        handle = await harness.start(queue, flows.StoresLarge.run)

        async def renewed() -> bool:
            return len(await runs_of(harness, handle)) == 2

        await until(renewed)
        first, last = await runs_of(harness, handle)
        headers = [
            e.activity_task_scheduled_event_attributes.header.fields[wire.HEADER].ByteSize()
            for e in await events_of(first)
            if e.HasField("activity_task_scheduled_event_attributes")
        ]
        assert len(headers) == 2
        assert max(headers) < 300
        assert 0 < await carried_bytes(last) < 1000
        await (last.cancel() if how == "cancel" else last.terminate())
        if how == "cancel":
            done = await harness.finish(last)
            assert len(str(done.report.to_dict())) < 2000
            assert sum(e.ByteSize() for e in done.history.events) < 20_000
    assert WORLD.of(handle.id)[:2] == ["store:a", "store:b"]
    assert WORLD.of(handle.id)[2:] == (["refund:b", "refund:a"] if how == "cancel" else [])
