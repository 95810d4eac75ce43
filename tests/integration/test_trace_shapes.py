"""What the traces of other shapes look like: parts, handlers, children, several runs."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import trace
from temporalio.client import WorkflowUpdateFailedError
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin
from temporalio.testing import WorkflowEnvironment

from agboss_temporal import CompensationPlugin
from agboss_temporal.core.budget import HistoryBudget
from tests.integration import telemetry_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import Harness, until_did, until_event
from tests.support.limits import Budgeted
from tests.support.traced import Traced, tracing


@pytest.fixture(params=[1000, 0], ids=["cached", "uncached"])
def traced(request: pytest.FixtureRequest) -> Iterator[Traced]:
    with tracing(request.param) as traced:
        yield traced
    WORLD.gates.clear()


@pytest.fixture
def harness(traced: Traced, server: WorkflowEnvironment) -> Harness:
    """Only our own spans, so that a shape is easy to see."""
    return traced.harness(server.client, plugins=[OpenTelemetryPlugin(), traced.ours])


async def test_a_join_that_fails(traced: Traced, harness: Harness) -> None:
    await traced.run(harness, flows.Told, "joins")
    assert traced.receiver.tree() == Counter(
        [
            "request",
            "request/Action:charge",
            "request/Action:charge",
            "request/UnwindStarted:Told",
            "request/Unwind:Told",
            "request/Unwind:Told/Undo:charge => Action:charge",
            "request/Unwind:Told/Undo:charge => Action:charge",
        ]
    )
    told = traced.receiver.one("Unwind:Told").own()
    assert (told["unwind.trigger"], told["unwind.unit"]) == ("join", "1")
    undos, actions = traced.receiver.named("Undo:"), traced.receiver.named("Action:")
    by_key = {each.own()["action.key"]: (each.trace, each.id) for each in actions}
    assert [each.links for each in undos] == [(by_key[u.own()["action.key"]],) for u in undos]


async def test_what_is_undone_together_overlaps(traced: Traced, harness: Harness) -> None:
    await traced.run(harness, flows.ToldTogether)
    first, second = traced.receiver.named("Undo:")
    unwind = traced.receiver.one("Unwind:ToldTogether")
    assert first.started == second.started
    assert first.parent == second.parent == unwind.id


async def test_a_child_that_is_undone_as_a_whole(
    traced: Traced, server: WorkflowEnvironment
) -> None:
    harness = traced.harness(server.client)
    async with harness.worker([flows.ToldParent, flows.ToldChild]) as queue:
        handle = await traced.start(harness, queue, flows.ToldParent.run)
        await harness.finish(handle)
    await traced.export()
    run = "request/StartWorkflow:ToldParent/RunWorkflow:ToldParent"
    child = f"{run}/Action:ToldChild/StartChildWorkflow:ToldChild/RunWorkflow:ToldChild"
    unwind = f"{run}/Unwind:ToldParent"
    tree = traced.receiver.tree()
    assert tree[f"{child}/StartActivity:note/RunActivity:note"] == 1
    assert tree[f"{unwind}/Undo:ToldChild => Action:ToldChild"] == 1
    undo = f"{unwind}/Undo:ToldChild/StartActivity:refund/RunActivity:refund"
    assert tree[f"{undo} => Action:ToldChild"] == 1
    assert set(tree.values()) == {1}


async def test_the_run_unwinds_in_its_own_trace_when_a_handler_fails(
    traced: Traced, harness: Harness
) -> None:
    async with harness.worker([flows.ToldByHandlers]) as queue:
        handle = await traced.start(harness, queue, flows.ToldByHandlers.run)
        await until_did(handle, "charge:main")
        with (
            trace.get_tracer("tests").start_as_current_span("update"),
            pytest.raises(WorkflowUpdateFailedError),
        ):
            await handle.execute_update(flows.ToldByHandlers.refuse)
        with trace.get_tracer("tests").start_as_current_span("signal"):
            await handle.signal(flows.ToldByHandlers.stop)
        await harness.finish(handle)
    await traced.export()
    ours = {path for path in traced.receiver.tree() if "=>" in path or "Unwind:" in path}
    assert ours == {
        "request/Unwind:ToldByHandlers",
        "request/Unwind:ToldByHandlers/Undo:charge => Action:charge",
        "signal/Unwind:ToldByHandlers",
        "signal/Unwind:ToldByHandlers/Undo:charge => Action:charge",
        "update/Unwind:ToldByHandlers",
        "update/Unwind:ToldByHandlers/Undo:charge => Action:charge",
    }


async def test_an_undo_by_a_later_run_has_no_span_to_link_to(
    traced: Traced, harness: Harness
) -> None:
    await traced.run(harness, flows.Told, "goes_on")
    first, second = traced.receiver.named("Action:charge")
    undone = traced.receiver.named("Undo:charge")
    links = {each.own()["action.key"]: each.links for each in undone}
    assert links == {
        second.own()["action.key"]: ((second.trace, second.id),),
        first.own()["action.key"]: (),
    }
    assert len({each.trace for each in traced.receiver.spans}) == 1


async def test_what_is_handed_over_stays_in_the_trace(
    traced: Traced, server: WorkflowEnvironment
) -> None:
    ours = Budgeted(HistoryBudget(events=1, per_child=1))
    harness = traced.harness(server.client, ours=ours, plugins=[OpenTelemetryPlugin(), ours])
    await traced.run(harness, flows.Told, "fails")
    part = "request/Unwind:Told/Unwind:agboss.recovery"
    tree = traced.receiver.tree()
    assert tree[part] == 2
    assert tree[f"{part}/Undo:charge"] == tree[f"{part}/Undo:reserve"] == 1
    assert len(traced.receiver.named("Undo:")) == 2


async def test_without_spans_of_actions_the_sdks_are_linked_to(
    traced: Traced, server: WorkflowEnvironment
) -> None:
    ours = CompensationPlugin()
    harness = traced.harness(server.client, ours=ours, plugins=[traced.theirs, ours])
    await traced.run(harness, flows.Told, "fails")
    found = {path.rpartition("/")[2] for path in traced.receiver.tree() if "Undo:" in path}
    assert found >= {
        "Undo:charge => StartActivity:charge",
        "Undo:reserve => StartActivity:reserve",
    }


async def test_without_any_span_of_actions_there_is_no_link(
    traced: Traced, server: WorkflowEnvironment
) -> None:
    ours = CompensationPlugin()
    harness = traced.harness(server.client, ours=ours, plugins=[OpenTelemetryPlugin(), ours])
    await traced.run(harness, flows.Told, "fails")
    assert traced.receiver.tree() == Counter(
        [
            "request",
            "request/UnwindStarted:Told",
            "request/Unwind:Told",
            "request/Unwind:Told/Undo:charge",
            "request/Unwind:Told/Undo:reserve",
        ]
    )


AT_GATE = Counter(
    [
        "request",
        "request/Action:reserve",
        "request/Action:charge",
        "request/UnwindStarted:ToldAtGate",
        "request/Unwind:ToldAtGate",
        "request/Unwind:ToldAtGate/Undo:charge => Action:charge",
        "request/Unwind:ToldAtGate/Undo:reserve => Action:reserve",
    ]
)


async def test_a_worker_that_stops_in_the_middle_ends_no_span(
    traced: Traced, harness: Harness
) -> None:
    """Its process lives on, and Python collects what it left, in whatever context."""
    WORLD.gate("release:gate")
    now = timedelta(0)
    quick: dict[str, Any] = {"sticky_queue_schedule_to_start_timeout": timedelta(seconds=1)}
    worker = harness.worker([flows.ToldAtGate], graceful_shutdown_timeout=now, **quick)
    async with worker as queue:
        handle = await traced.start(harness, queue, flows.ToldAtGate.run)
        await until_did(handle, "at:release:gate")
    gc.collect()
    await traced.export()
    ours = [each.name for each in traced.receiver.named("Un")]
    assert ours == ["UnwindStarted:ToldAtGate", "Undo:charge"]
    WORLD.gate("release:gate").set()
    async with harness.worker([flows.ToldAtGate], queue=queue, **quick):
        await harness.finish(handle)
    await traced.export()
    assert traced.receiver.tree() == AT_GATE
    assert traced.receiver.one("Unwind:ToldAtGate").own()["unwind.status"] == "completed"
    await harness.replay_all()


async def test_tracing_can_be_switched_on_while_a_run_is_open(
    traced: Traced, server: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    WORLD.gate("release:gate")
    quick: dict[str, Any] = {"sticky_queue_schedule_to_start_timeout": timedelta(seconds=1)}
    with monkeypatch.context() as without:
        without.setattr(trace, "_TRACER_PROVIDER", None)
        plain = traced.harness(server.client, plugins=[traced.ours])
        worker = plain.worker([flows.ToldAtGate], graceful_shutdown_timeout=timedelta(0), **quick)
        async with worker as queue:
            handle = await plain.start(queue, flows.ToldAtGate.run)
            await until_did(handle, "at:release:gate")
    assert traced.receiver.spans == []
    harness = traced.harness(server.client)
    WORLD.gate("release:gate").set()
    async with harness.worker([flows.ToldAtGate], queue=queue, **quick):
        await until_event(handle, "WorkflowExecutionFailed")
    await traced.export()
    assert [each.name for each in traced.receiver.named("Un")] == [
        "Unwind:ToldAtGate",
        "Undo:reserve",
    ]
    await plain.replay_all()
