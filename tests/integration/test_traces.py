"""Spans, as a real OTLP receiver gets them from a real exporter."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.integration import telemetry_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import Harness
from tests.support.traced import Traced, tracing

RUN = "request/StartWorkflow:Told/RunWorkflow:Told"
UNWIND = f"{RUN}/Unwind:Told"

FAILS = Counter(
    {
        "request": 1,
        "request/StartWorkflow:Told": 1,
        RUN: 1,
        f"{RUN}/Action:reserve": 1,
        f"{RUN}/Action:reserve/StartActivity:reserve": 1,
        f"{RUN}/Action:reserve/StartActivity:reserve/RunActivity:reserve": 1,
        f"{RUN}/StartActivity:note": 1,
        f"{RUN}/StartActivity:note/RunActivity:note": 1,
        f"{RUN}/Action:charge": 1,
        f"{RUN}/Action:charge/StartActivity:charge": 1,
        f"{RUN}/Action:charge/StartActivity:charge/RunActivity:charge": 1,
        f"{RUN}/StartActivity:explode": 1,
        f"{RUN}/StartActivity:explode/RunActivity:explode": 1,
        f"{RUN}/UnwindStarted:Told": 1,
        UNWIND: 1,
        f"{UNWIND}/Undo:charge => Action:charge": 1,
        f"{UNWIND}/Undo:charge/StartActivity:refund": 1,
        f"{UNWIND}/Undo:charge/StartActivity:refund/RunActivity:refund => Action:charge": 1,
        f"{UNWIND}/Undo:reserve => Action:reserve": 1,
        f"{UNWIND}/Undo:reserve/StartActivity:release": 1,
        f"{UNWIND}/Undo:reserve/StartActivity:release/RunActivity:release => Action:reserve": 1,
    }
)
"""Every span of a run that fails after two actions: its path, and what it is linked to."""


@pytest.fixture(params=[1000, 0], ids=["cached", "uncached"])
def traced(request: pytest.FixtureRequest) -> Iterator[Traced]:
    with tracing(request.param) as traced:
        yield traced


ARRANGEMENTS = [
    ("TO", ""),
    ("OT", ""),
    ("T", "O"),
    ("O", "T"),
    ("", "TO"),
    ("", "OT"),
]


@pytest.mark.parametrize(
    ("on_client", "on_worker"), ARRANGEMENTS, ids=[f"{c}-{w}" for c, w in ARRANGEMENTS]
)
async def test_one_trace_wherever_the_plugins_are(
    traced: Traced,
    server: WorkflowEnvironment,
    caplog: pytest.LogCaptureFixture,
    on_client: str,
    on_worker: str,
) -> None:
    """``T`` is the plugin that traces, ``O`` our own."""
    plugins = {"T": traced.theirs, "O": traced.ours}
    harness = traced.harness(server.client, plugins=[plugins[each] for each in on_client])
    beside = [plugins[each] for each in on_worker]
    await traced.run(harness, flows.Told, "fails", plugins=beside)
    expected = FAILS
    if "T" in on_worker:
        # Nothing of the client is traced, nor sent along: the run's trace is its own.
        inside = [path for path in FAILS if path.startswith(RUN)]
        expected = Counter([path.replace("request/StartWorkflow:Told/", "") for path in inside])
        expected["request"] = 1
    assert traced.receiver.tree() == expected
    assert len({each.trace for each in traced.receiver.named("RunW", "Act", "Un")}) == 1
    await harness.replay_all()
    await traced.export()
    assert traced.receiver.tree() == expected
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


@pytest.fixture
def harness(traced: Traced, server: WorkflowEnvironment) -> Harness:
    return traced.harness(server.client)


async def test_times_and_attributes(traced: Traced, harness: Harness) -> None:
    WORLD.broken.add("stuck")
    done = await traced.run(harness, flows.Told, "gives_up")
    WORLD.broken.discard("stuck")
    receiver = traced.receiver
    [charged, stuck] = done.report.entries
    unwind = receiver.one("Unwind:Told")
    assert unwind.own() == {
        "unwind.trigger": "node-failure",
        "unwind.ordinal": 1,
        "unwind.size": 2,
        "unwind.status": "partial",
        "unwind.verdicts.undone": 1,
        "unwind.verdicts.failed": 1,
    }
    assert unwind.attributes["error.type"] == "Boom"
    assert unwind.attributes["temporalWorkflowID"] == done.workflow_id
    assert unwind.failed
    assert unwind.scope == "agboss_temporal"
    [told] = done.report.unwinds
    assert told.started_at is not None
    assert told.ended_at is not None
    took = (told.ended_at - told.started_at).total_seconds()
    assert (unwind.ended - unwind.started) / 1e9 == pytest.approx(took, abs=0.001)
    started = receiver.one("UnwindStarted:Told")
    assert started.started == started.ended == unwind.started
    undone, failed = receiver.named("Undo:")
    assert undone.own() == {
        "action.name": "charge",
        "action.key": charged.key,
        "action.outcome": "completed",
        "undo.name": "refund",
        "undo.verdict": "undone",
    }
    assert not undone.failed
    assert failed.own()["undo.verdict"] == "failed"
    assert failed.own()["undo.reason"] == "ReleaseBroken"
    assert failed.own()["action.key"] == stuck.key
    assert failed.failed
    assert unwind.started <= undone.started <= undone.ended <= failed.started <= failed.ended
    assert failed.ended <= unwind.ended
    action = receiver.one("Action:charge")
    assert action.own() == {
        "action.name": "charge",
        "action.key": charged.key,
        "action.state": "opened",
    }
    await harness.replay_all()


async def test_an_undo_that_code_calls_is_linked_too(traced: Traced, harness: Harness) -> None:
    await traced.run(harness, flows.Told, "by_hand")
    linked = [path for path in traced.receiver.tree() if " => " in path]
    [path] = [path for path in linked if path.endswith(" => Action:charge")]
    assert "StartActivity:refund/RunActivity:refund" in path


async def test_no_message_and_no_payload_is_in_a_span(traced: Traced, harness: Harness) -> None:
    await traced.run(harness, flows.Told, "fails")
    ours = [each for each in traced.receiver.spans if each.scope == "agboss_temporal"]
    assert len(ours) == 6
    assert "it went wrong" not in repr(ours)
