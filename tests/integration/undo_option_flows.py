"""Options of the undo's call: of the contract, of the policy, by default."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy

from agboss_temporal import CompensatedWorkflow, CompensationPolicy, action
from tests.integration.undo_input_seen import Narrow
from tests.support.acts import WORLD
from tests.support.calls import ONCE, explode

ELSEWHERE = "the-desk-that-undoes"


@activity.defn
async def take_back(value: Narrow) -> None:
    WORLD.did(f"take back on {activity.info().task_queue}")


@action(compensate_with=take_back)
@activity.defn
async def give_out() -> Narrow:
    WORLD.did(f"give out on {activity.info().task_queue}")
    return Narrow(1)


@activity.defn
async def take_back_elsewhere(value: Narrow) -> None:
    WORLD.did(f"take back on {activity.info().task_queue}")


@action(
    compensate_with=take_back_elsewhere,
    undo_options={
        "task_queue": ELSEWHERE,
        "start_to_close_timeout": timedelta(seconds=5),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(seconds=3), maximum_attempts=7, backoff_coefficient=1.5
        ),
        "priority": Priority(priority_key=5),
    },
)
@activity.defn
async def give_out_elsewhere() -> Narrow:
    return Narrow(2)


@workflow.defn
class Options(CompensatedWorkflow):
    """Calls both with a priority, on a given queue; its policy has options of its own."""

    compensation = CompensationPolicy(
        undo_options={
            "start_to_close_timeout": timedelta(seconds=9),
            "heartbeat_timeout": timedelta(seconds=4),
        }
    )

    @workflow.run
    async def run(self, queue: str | None) -> None:
        options: dict[str, Any] = {
            **ONCE,
            "task_queue": queue,
            "priority": Priority(priority_key=2),
        }
        await workflow.execute_activity(give_out, **options)
        await workflow.execute_activity(give_out_elsewhere, **options)
        await explode()


@workflow.defn
class Defaults(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(give_out, **ONCE)
        await explode()
