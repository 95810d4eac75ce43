"""Recovering runs in tests, and looking at what that did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio.api.enums.v1 import EventType

from agboss_temporal import recovery
from agboss_temporal.recovery import Recovery
from tests.support.acts import WORLD
from tests.support.harness import Handle, Harness, events_of

PREFIX = "agboss-recovery/"


def outside(workflow_id: str) -> list[str]:
    """What a workflow, its children and their recoveries did, in order."""
    return [
        what for who, what in WORLD.timeline if who.removeprefix(PREFIX).startswith(workflow_id)
    ]


def undone(workflow_id: str) -> list[str]:
    """What recoveries of a workflow did, in order."""
    return [what for who, what in WORLD.timeline if who.startswith(f"{PREFIX}{workflow_id}/")]


def keys(workflow_id: str, what: str) -> list[str]:
    """The keys under which a workflow, or a recovery of it, did something."""
    return [
        key
        for who, done in WORLD.keys.items()
        if who.removeprefix(PREFIX).split("/")[0] == workflow_id
        for effect, key in done
        if effect == what
    ]


async def recover(harness: Harness, handle: Handle, **options: Any) -> Recovery:
    """Recover the newest run of a workflow; the recoveries are replayed at the end of the test."""
    found = await recovery.recover(harness.client, handle.id, **options)
    replayed_too(harness, handle, found.recovery_ids)
    return found


def replayed_too(harness: Harness, handle: Handle, ids: Sequence[str]) -> None:
    """Have the histories of recoveries replayed at the end of the test."""
    known = {each.id for each, _ in harness._runs}
    flows = next(flows for each, flows in harness._runs if each.id == handle.id)
    harness._runs += [
        (harness.client.get_workflow_handle(each), flows) for each in ids if each not in known
    ]


def verdicts(found: Recovery) -> list[tuple[str, str | None]]:
    return [(each.action, each.verdict) for each in found.undos]


async def closed_by(handle: Handle) -> str:
    """Name the event that closed a run."""
    last = (await events_of(handle))[-1]
    return EventType.Name(last.event_type).removeprefix("EVENT_TYPE_WORKFLOW_EXECUTION_")
