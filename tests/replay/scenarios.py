"""What is recorded for ever: one history of each kind of run."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.common import RawValue

from agboss_temporal import CompensationPlugin
from agboss_temporal.core import recovery
from agboss_temporal.core.budget import HistoryBudget
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.contract import Contract
from agboss_temporal.recovery_workflow import RecoveryWorkflow
from tests.integration import (
    causal_flows,
    child_flows,
    endings_flows,
    explicit_flows,
    handler_flows,
    join_flows,
    limit_flows,
    race_flows,
    unit_flows,
)
from tests.support.acts import WORLD
from tests.support.harness import Handle, until_did, until_event, until_observed
from tests.support.limits import Budgeted

Meanwhile = Callable[[Handle], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """A workflow, its arguments, and what happens to it while it runs."""

    name: str
    workflows: Sequence[type]
    args: Sequence[Any] = ()
    meanwhile: Meanwhile | None = None
    plugin: Callable[[], CompensationPlugin] = CompensationPlugin


async def cancel_in_timer(handle: Handle) -> None:
    await until_event(handle, "TimerStarted")
    await handle.cancel()


async def cancel_in_flight(handle: Handle) -> None:
    await until_did(handle, f"at:{handle.id}")
    await handle.cancel()
    await until_event(handle, "ActivityTaskCancelRequested")
    WORLD.gate(handle.id).set()


async def break_by_signal(handle: Handle) -> None:
    await until_event(handle, "ActivityTaskCompleted")
    await handle.signal("break_it")


async def cancel_child(handle: Handle) -> None:
    await until_event(handle, "ChildWorkflowExecutionStarted")
    await handle.signal("go")


async def update_and_fail(handle: Handle) -> None:
    """One update fails and is undone, one leaves something to a committer, one is at work."""
    await until_observed(handle)
    with contextlib.suppress(WorkflowUpdateFailedError):
        await handle.execute_update("bad", "x", id="bad")
    await handle.execute_update("holds", "y", id="holds")
    waits = await handle.start_update(
        "waits", "z", id="waits", wait_for_stage=WorkflowUpdateStage.ACCEPTED
    )
    await until_observed(handle, 8)
    await handle.signal("end", "fail")
    with contextlib.suppress(WorkflowUpdateFailedError):
        await waits.result()


async def break_by_signal_handler(handle: Handle) -> None:
    await until_observed(handle)
    await handle.signal("breaks", "x")


def without_room() -> CompensationPlugin:
    return Budgeted(HistoryBudget(events=1, per_child=2))


def recovery_plan() -> RawValue:
    """The plan of a run that charged "a" and "b" and is gone."""
    charge = Contract("charge", undo="refund")
    receipts = [
        Payload(metadata={"encoding": b"json/plain"}, data=b'{"item":"%b","amount":1.0}' % item)
        for item in (b"a", b"b")
    ]
    plan = recovery.RecoveryPlan(
        workflow_id="gone",
        run_id="its-run",
        entries=[
            Carried(f"5eed-{n}", charge, receipt.SerializeToString())
            for n, receipt in enumerate(receipts, 1)
        ],
        order=[1, 0],
        unwind=1,
        trigger="operator-request",
    )
    data = recovery.encode_plan(plan)
    return RawValue(Payload(metadata={"encoding": b"binary/plain"}, data=data))


FAMILY = [child_flows.Parent, child_flows.BookTrip, child_flows.Known]

SCENARIOS = [
    Scenario("good", [endings_flows.Ending], ["good"]),
    Scenario("failed", [endings_flows.Ending], ["activity_error"]),
    Scenario("limit", [endings_flows.Ending], ["limit"]),
    Scenario("cancelled", [endings_flows.Ending], ["sleep"], cancel_in_timer),
    Scenario("uncommitted", [endings_flows.Ending], ["uncommitted"]),
    Scenario("task-group", [endings_flows.Group], ["one"]),
    Scenario("signalled", [endings_flows.Signalled], ["waits"], break_by_signal),
    Scenario("undo-fails", [endings_flows.UndoFails], ["fail"]),
    Scenario("caught", [endings_flows.Caught]),
    Scenario("in-flight", [race_flows.InFlight], ["direct"], cancel_in_flight),
    Scenario("in-flight-group", [race_flows.InFlight], ["grouped"], cancel_in_flight),
    Scenario("compensate", [explicit_flows.ByHand], ["compensate_one"]),
    Scenario("by-hand", [explicit_flows.ByHand], ["identity"]),
    Scenario("ambiguous", [explicit_flows.ByHand], ["ambiguous"]),
    Scenario("unit", [unit_flows.Units], ["caught_then_fails"]),
    Scenario("sealed-units", [unit_flows.Units], ["sealed_rounds"]),
    Scenario("handed-over", [unit_flows.Units], ["committer_of_a_sibling"]),
    Scenario("join", [join_flows.Joins], ["in_a_unit"]),
    Scenario("join-cancelled", [join_flows.Joins], ["cancelled"], cancel_in_flight),
    Scenario("updates", [handler_flows.Handled], ["main"], update_and_fail),
    Scenario("failing-signal", [handler_flows.Handled], ["main"], break_by_signal_handler),
    Scenario("finished-child", FAMILY, ["undoes_finished_child"]),
    Scenario("running-child", FAMILY, ["child_runs"], cancel_child),
    Scenario("causal", [causal_flows.Causal], [[["a"], ["b", "broken", "c"], ["d"]]]),
    Scenario("causal-narrow", [causal_flows.Narrow], [[["a", "b", "c", "d", "e"], ["f"]]]),
    Scenario(
        "delegated", [limit_flows.Many], [["a", "broken", "c", "d", "e"]], plugin=without_room
    ),
    Scenario("recovery", [RecoveryWorkflow], [recovery_plan()]),
]
