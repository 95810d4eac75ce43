"""Records what `tests/replay` has no history of: ``python -m tests.mutation.record``.

A history that is there is left alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agboss_temporal import CompensationPlugin
from tests.integration import (
    causal_flows,
    continue_flows,
    explicit_flows,
    limit_flows,
    unknown_flows,
)
from tests.replay.record import record_missing, without_place
from tests.replay.scenarios import without_room
from tests.support.acts import ACTIVITIES
from tests.support.harness import Handle, Harness, until_did

HISTORIES = Path(__file__).parent / "histories"


@dataclass(frozen=True)
class Scenario:
    """A workflow, its arguments, and what happens to it while it runs."""

    name: str
    workflow: type
    args: Sequence[Any] = ()
    activities: Sequence[Callable[..., Any]] = ()
    meanwhile: Callable[[Handle], Awaitable[None]] | None = None
    plugin: Callable[[], CompensationPlugin] = CompensationPlugin


async def cancel_when_done(handle: Handle) -> None:
    await until_did(handle, "act:odd")
    await handle.cancel()


MANY = limit_flows.EVERYTHING
ACTS = unknown_flows.ACTS
COMMITS = [unknown_flows.open_account, unknown_flows.confirm, unknown_flows.close_account]

SCENARIOS = [
    Scenario(
        "kept-delegated",
        limit_flows.Many,
        [["a", "doubtful-1", "shred-b", "c", "shred-d", "e"]],
        MANY,
        plugin=without_room,
    ),
    Scenario("kept", limit_flows.Many, [["a", "shred-b", "broken", "shred-c", "d"]], MANY),
    Scenario("stopped", limit_flows.Stops, [["a", "shred-b", "broken", "d"]], MANY),
    Scenario("kept-causal", causal_flows.Causal, [[["a", "shred-b"], ["c"], ["broken"]]], MANY),
    Scenario("several-in-doubt", unknown_flows.Several, (), ACTS),
    Scenario("committer-in-doubt", unknown_flows.CommitterInDoubt, (), COMMITS),
    Scenario(
        "abandoned", unknown_flows.Cancelled, ["act_args", "abandoned"], ACTS, cancel_when_done
    ),
    Scenario("carried", continue_flows.Generations, ["fail", 2]),
    Scenario("explicit-fails", explicit_flows.ByHand, ["fails"]),
    Scenario("compensate-then-goes-on", explicit_flows.ByHand, ["compensate_then_go_on"]),
]


async def record(harness: Harness, scenario: Scenario) -> None:
    """Run a scenario and keep the history of its last run."""
    activities = [*ACTIVITIES, *scenario.activities]
    async with harness.worker([scenario.workflow], activities, identity="worker") as queue:
        run = scenario.workflow.run  # type: ignore[attr-defined]
        handle = await harness.start(queue, run, *scenario.args, id=scenario.name)
        if scenario.meanwhile is not None:
            await scenario.meanwhile(handle)
        done = await harness.finish(harness.client.get_workflow_handle(handle.id))
    text = json.dumps(without_place(done.history.to_json_dict()), separators=(",", ":"))
    (HISTORIES / f"{scenario.name}.json").write_text(text + "\n")


if __name__ == "__main__":
    asyncio.run(record_missing(SCENARIOS, HISTORIES, record))
