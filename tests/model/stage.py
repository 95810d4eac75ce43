"""The outside world of the programs: what was done, and what waits to be let go."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

from temporalio import activity


@dataclass(frozen=True)
class Order:
    """What an activity in flight is told.

    Attributes:
        cancelled: The server has been asked to cancel it.
        vanish: The run is closed; do nothing.
    """

    cancelled: bool = False
    vanish: bool = False


@dataclass
class Waiting:
    """An attempt of an activity that waits to be let go."""

    label: str
    order: asyncio.Future[Order]


@dataclass
class Stage:
    """What one program's runs, its children's included, do outside."""

    root: str
    world: list[str] = field(default_factory=list)
    waiting: dict[tuple[str, str], Waiting] = field(default_factory=dict)
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    holding: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    async def arrive(self, label: str) -> Order:
        """Wait, in an activity, until the driver lets it go."""
        info = activity.info()
        key = (info.workflow_run_id or "", info.activity_id)
        self.waiting[key] = Waiting(label, asyncio.get_running_loop().create_future())
        self.moved.set()
        return await self.waiting[key].order

    def did(self, what: str) -> None:
        """Have an effect."""
        self.world.append(what)


STAGES: dict[str, Stage] = {}


def stage_of(workflow_id: str | None) -> Stage:
    """The stage of a run or of one of its children."""
    return STAGES[(workflow_id or "").partition("/")[0]]


def here() -> Stage:
    """The stage of the activity that asks."""
    return stage_of(activity.info().workflow_id)
