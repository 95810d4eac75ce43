"""Records a history of each scenario: ``python -m tests.replay.record``.

Only for new scenarios. A recorded history is never recorded again: it stands for the runs that
users have open while they upgrade.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from temporalio.testing import WorkflowEnvironment

from agboss_temporal import CompensationPlugin
from tests.conftest import binary
from tests.replay.scenarios import SCENARIOS, Scenario
from tests.support.acts import WORLD
from tests.support.harness import Harness

HISTORIES = Path(__file__).parent / "histories"


class Named(Protocol):
    """What every scenario has, whatever else it is."""

    @property
    def name(self) -> str: ...

    @property
    def plugin(self) -> Callable[[], CompensationPlugin]: ...


S = TypeVar("S", bound=Named)


async def record(harness: Harness, scenario: Scenario) -> None:
    """Run a scenario and keep its history."""
    async with harness.worker(scenario.workflows, identity="worker") as queue:
        run = scenario.workflows[0].run  # type: ignore[attr-defined]
        handle = await harness.start(queue, run, *scenario.args, id=scenario.name)
        if scenario.meanwhile is not None:
            await scenario.meanwhile(handle)
        done = await harness.finish(handle)
    text = json.dumps(without_place(done.history.to_json_dict()), indent=1)
    (HISTORIES / f"{scenario.name}.json").write_text(text + "\n")


def without_place(value: Any) -> Any:
    """Take out what names the machine: stack traces and identities. Replay reads neither."""
    if isinstance(value, dict):
        return {
            name: "worker" if name == "identity" else without_place(each)
            for name, each in value.items()
            if name != "stackTrace"
        }
    if isinstance(value, list):
        return [without_place(each) for each in value]
    return value


async def record_missing(
    scenarios: Iterable[S], histories: Path, record: Callable[[Harness, S], Awaitable[None]]
) -> None:
    """Record what has no history yet."""
    WORLD.broken.add("broken")
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"), dev_server_log_level="error"
    ) as env:
        for scenario in scenarios:
            if not (histories / f"{scenario.name}.json").exists():
                await record(Harness(env.client, plugin=scenario.plugin()), scenario)
    gc.collect()


if __name__ == "__main__":
    asyncio.run(record_missing(SCENARIOS, HISTORIES, record))
