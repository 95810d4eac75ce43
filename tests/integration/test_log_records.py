"""Log records: one for each thing that happens, for people and for machines, without payloads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from agboss_temporal.core.budget import HistoryBudget
from tests.integration import telemetry_flows as flows
from tests.support.acts import WORLD
from tests.support.harness import Done, Harness, until_did
from tests.support.limits import Budgeted


@pytest.fixture(autouse=True)
def records(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, logger="temporalio.workflow"):
        yield


def said(caplog: pytest.LogCaptureFixture, done: Done) -> list[tuple[str, dict[str, Any]]]:
    """What was said of one run: level and fields."""
    return [
        (record.levelname, record.__dict__["agboss_compensation"])
        for record in caplog.records
        if "agboss_compensation" in record.__dict__
        and record.__dict__["temporal_workflow"]["workflow_id"] == done.workflow_id
    ]


async def test_a_run_that_unwinds(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    done = await harness.run(flows.Told, "fails")
    await harness.replay_all()
    keys = [entry.key for entry in reversed(done.report.entries)]
    assert said(caplog, done) == [
        ("DEBUG", {"event": "opened", "action": "reserve", "key": keys[0]}),
        ("DEBUG", {"event": "opened", "action": "charge", "key": keys[1]}),
        ("INFO", {"event": "unwind_started", "trigger": "node-failure", "cause": "Boom"}),
        (
            "INFO",
            {
                "event": "unwind_ended",
                "trigger": "node-failure",
                "cause": "Boom",
                "ordinal": 1,
                "status": "completed",
                "verdicts": {"undone": 2},
            },
        ),
    ]
    assert "it went wrong" not in [r.getMessage() for r in caplog.records if "unwind" in r.message]


async def test_a_run_that_is_sealed(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    done = await harness.run(flows.Told, "good")
    told = [(level, f["event"], f["action"]) for level, f in said(caplog, done)]
    assert told == [
        ("DEBUG", "opened", "reserve"),
        ("DEBUG", "opened", "charge"),
        ("DEBUG", "sealed", "reserve"),
        ("DEBUG", "sealed", "charge"),
    ]


async def test_an_undo_that_gives_up(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    WORLD.broken.add("stuck")
    done = await harness.run(flows.Told, "gives_up")
    WORLD.broken.discard("stuck")
    [gave_up] = [each for each in said(caplog, done) if each[0] == "ERROR"]
    assert gave_up[1] == {
        "event": "undo_gave_up",
        "action": "reserve",
        "undo": "release",
        "key": done.report.entries[1].key,
        "reason": "ReleaseBroken",
    }
    level, ended = said(caplog, done)[-1]
    assert (level, ended["verdicts"]) == ("WARNING", {"undone": 1, "failed": 1})


async def test_what_is_handed_over_is_told_of_where_it_is_undone(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    WORLD.broken.add("stuck")
    handing = Budgeted(HistoryBudget(events=1, per_child=1))
    full = Harness(harness.plain, cache=harness.cache, plugin=handing)
    done = await full.run(flows.Told, "gives_up")
    WORLD.broken.discard("stuck")
    await full.replay_all()
    events = [fields["event"] for _, fields in said(caplog, done)]
    assert (done.report.status, events.count("undo_gave_up")) == ("partial", 0)
    [told] = [r for r in caplog.records if r.levelname == "ERROR"]
    assert told.__dict__["temporal_workflow"]["workflow_type"] == "agboss.recovery"


async def test_an_action_in_doubt(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    async with harness.worker([flows.Told]) as queue:
        handle = await harness.start(queue, flows.Told.run, "leaves_running")
        done = await harness.finish(handle)
        WORLD.gate("telemetry").set()
        await until_did(handle, "charge:late")
    WORLD.gate("telemetry").clear()
    [(level, fields)] = said(caplog, done)
    assert level == "WARNING"
    assert (fields["event"], fields["action"], fields["doubt"]) == (
        "in_doubt",
        "charge",
        "abandoned",
    )


async def test_nothing_is_built_for_a_level_that_is_off(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="temporalio.workflow"):
        done = await harness.run(flows.Told, "fails")
    assert said(caplog, done) == []


async def test_a_unit_is_named(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    done = await harness.run(flows.Told, "joins")
    started = [f for _, f in said(caplog, done) if f["event"] == "unwind_started"]
    assert [(f["trigger"], f["unit"]) for f in started] == [("join", "1")]
