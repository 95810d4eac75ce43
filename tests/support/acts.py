"""Activities of the scenarios. What they really did is in `WORLD`, in the order in which they did it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.exceptions import ApplicationError

from agboss_temporal import action, idempotency_key


@dataclass
class World:
    """The outside world of one test process, by workflow id."""

    effects: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    def did(self, what: str) -> None:
        workflow_id = activity.info().workflow_id
        with self.lock:
            self.effects.setdefault(workflow_id or "", []).append(what)

    def key(self, what: str) -> None:
        with self.lock:
            self.keys.setdefault(activity.info().workflow_id or "", []).append(
                (what, idempotency_key())
            )

    def of(self, workflow_id: str) -> list[str]:
        return list(self.effects.get(workflow_id, []))

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())


WORLD = World()


@dataclass
class Receipt:
    item: str
    amount: float = 1.0


@activity.defn
async def release(receipt: Receipt) -> None:
    if receipt.item in WORLD.broken:
        raise ApplicationError("cannot release", type="ReleaseBroken", non_retryable=True)
    WORLD.key(f"release:{receipt.item}")
    WORLD.did(f"release:{receipt.item}")


@activity.defn
async def ship(item: str) -> str:
    WORLD.key(f"ship:{item}")
    WORLD.did(f"ship:{item}")
    return item


@action(compensate_with=release, committed_by=ship)
@activity.defn
async def reserve(item: str, delay: float = 0.0) -> Receipt:
    await asyncio.sleep(delay)
    WORLD.key(f"reserve:{item}")
    WORLD.did(f"reserve:{item}")
    return Receipt(item)


@activity.defn
async def refund(receipt: Receipt) -> None:
    WORLD.did(f"refund:{receipt.item}")


@action(compensate_with=refund)
@activity.defn
async def charge(item: str, delay: float = 0.0) -> Receipt:
    await asyncio.sleep(delay)
    WORLD.did(f"charge:{item}")
    return Receipt(item)


@activity.defn
async def explode(kind: str = "Boom") -> None:
    raise ApplicationError("it went wrong", type=kind, non_retryable=True)


ACTIVITIES = [release, ship, reserve, refund, charge, explode]
