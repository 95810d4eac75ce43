"""Recorded histories replay for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from tests.replay.scenarios import SCENARIOS, Scenario

HISTORIES = Path(__file__).parent / "histories"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
async def test_e5_a_recorded_history_replays(scenario: Scenario) -> None:
    text = (HISTORIES / f"{scenario.name}.json").read_text()
    replayer = Replayer(workflows=scenario.workflows, plugins=[scenario.plugin()])
    await replayer.replay_workflow(WorkflowHistory.from_json(scenario.name, text))


def test_every_recorded_history_has_a_scenario() -> None:
    assert {p.stem for p in HISTORIES.glob("*.json")} == {s.name for s in SCENARIOS}


async def test_a_history_does_not_replay_without_the_plugin() -> None:
    """Shows that the histories above prove something."""
    failed = next(s for s in SCENARIOS if s.name == "task-group")
    text = (HISTORIES / "task-group.json").read_text()
    with pytest.raises(Exception, match=r"needs compensation|Nondeterminism|TMPRL1100"):
        await Replayer(workflows=failed.workflows).replay_workflow(
            WorkflowHistory.from_json("task-group", text)
        )
