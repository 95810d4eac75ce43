"""Activities of the scenarios. `WORLD` holds what they really did, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from agboss_temporal import action, idempotency_key


@dataclass
class World:
    """The outside world of one test process, by workflow id."""

    effects: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    timeline: list[tuple[str, str]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    def did(self, what: str) -> None:
        """Have an effect, under the key of the activity that has it."""
        workflow_id = activity.info().workflow_id or ""
        self.effects.setdefault(workflow_id, []).append(what)
        self.timeline.append((workflow_id, what))
        try:
            key = idempotency_key()
        except Exception:
            return
        self.keys.setdefault(workflow_id, []).append((what, key))

    def of(self, workflow_id: str) -> list[str]:
        return list(self.effects.get(workflow_id, []))

    def across(self, workflow_id: str) -> list[str]:
        """What a workflow did, and every workflow whose id begins like its own, in order."""
        return [what for who, what in self.timeline if who.startswith(workflow_id)]

    def gate(self, name: str) -> asyncio.Event:
        """An event that an activity waits for until the test sets it."""
        return self.gates.setdefault(name, asyncio.Event())


WORLD = World()


@dataclass
class Receipt:
    item: str
    amount: float = 1.0


async def _at_gate(gate: str | None) -> None:
    if gate is not None:
        WORLD.did(f"at:{gate}")
        await WORLD.gate(gate).wait()


@activity.defn
async def release(receipt: Receipt) -> None:
    gate = f"release:{receipt.item}"
    await _at_gate(gate if gate in WORLD.gates else None)
    if receipt.item in WORLD.broken:
        raise ApplicationError("cannot release", type="ReleaseBroken", non_retryable=True)
    WORLD.did(f"release:{receipt.item}")


@activity.defn
async def ship(item: str, gate: str | None = None) -> str:
    await _at_gate(gate)
    WORLD.did(f"ship:{item}")
    return item


@action(compensate_with=release, committed_by=ship)
@activity.defn
async def reserve(item: str, gate: str | None = None) -> Receipt:
    await _at_gate(gate)
    WORLD.did(f"reserve:{item}")
    return Receipt(item)


@activity.defn
async def refund(receipt: Receipt) -> None:
    gate = f"refund:{receipt.item}"
    await _at_gate(gate if gate in WORLD.gates else None)
    if receipt.item in WORLD.broken:
        raise ApplicationError("cannot refund", type="RefundBroken", non_retryable=True)
    WORLD.did(f"refund:{receipt.item}")


@action(compensate_with=refund)
@activity.defn
async def charge(item: str, gate: str | None = None) -> Receipt:
    await _at_gate(gate)
    WORLD.did(f"charge:{item}")
    return Receipt(item)


@activity.defn
async def explode(kind: str = "Boom") -> None:
    raise ApplicationError("it went wrong", type=kind, non_retryable=True)


@activity.defn
async def note(what: str) -> str:
    """An activity that no contract names."""
    WORLD.did(f"note:{what}")
    return what


ACTIVITIES: Sequence[Callable[..., Any]] = [release, ship, reserve, refund, charge, explode, note]
