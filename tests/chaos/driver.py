"""Runs many orders at once while their workers are killed: ``python -m tests.chaos.driver``."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random

from temporalio.client import Client, WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer

from agboss_temporal import CompensationPlugin
from tests.chaos.checks import Closed, faults_of
from tests.chaos.crew import Crew
from tests.chaos.orders import Order
from tests.chaos.plan import plan_of
from tests.chaos.shop import ChaosOrder
from tests.chaos.world import World
from tests.conftest import binary

PATIENCE = 60.0
"""Seconds after the last kill within which every order must be closed."""


@dataclass(frozen=True)
class Settings:
    """What to run.

    Attributes:
        seed: Makes the orders; order ``n`` has the seed ``seed * 10_000 + n``.
        orders: How many.
        every: Seconds between two kills.
        cache: How many workflows each of the workers keeps cached, with commas between.
        seconds: How long the killing goes on if orders are still open.
        replays: How many histories are replayed afterwards.
    """

    seed: int
    orders: int = 100
    every: float = 2.0
    cache: str = "1000,1000"
    seconds: float = 120.0
    replays: int = 20

    @property
    def command(self) -> str:
        """What to type to run the same again."""
        return (
            f"python -m tests.chaos.driver --seed {self.seed} --orders {self.orders} "
            f"--every {self.every} --cache {self.cache} --seconds {self.seconds}"
        )


@dataclass
class Result:
    """What came of it."""

    settings: Settings
    faults: dict[int, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, order: Closed) -> None:
        """Check an order and count what happened to it."""
        faults = faults_of(order)
        if faults:
            self.faults[order.plan.seed] = faults
        counts, report = self.counts, order.report
        counts[order.record.ending.lower()] += 1
        counts["attempts"] += len(order.attempts)
        counts["repeated attempts"] += sum(a.attempt > 1 for a in order.attempts)
        counts["effects"] += len(order.effects)
        counts["undos"] += len(order.record.unwind())
        counts["undos of unknown outcome"] += sum(e.outcome == "unknown" for e in report.entries)
        counts["reported in doubt"] += len(report.in_doubt)
        counts["left, but reported"] += len(order.left() & {d.key for d in report.in_doubt})

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        lines = [f"{self.settings.command}: {self.seconds:.1f} s; {counts}"]
        for seed, faults in self.faults.items():
            lines.append(f"order of seed {seed}: {plan_of(seed)}")
            lines += [f"  {fault}" for fault in faults]
        return "\n".join(lines)


async def chaos(plain: Client, settings: Settings, folder: Path) -> Result:
    """Run orders while workers are killed, and check every one of them."""
    config = plain.config()
    config["plugins"] = [CompensationPlugin()]
    client = Client(**config)
    result = Result(settings)
    began = time.monotonic()
    path = folder / "world.db"
    world = World(path)
    try:
        seen = await _run(client, settings, path, world, result)
    finally:
        world.close()
    for closed, _ in seen:
        result.add(closed)
    sample = Random(settings.seed).sample(seen, min(settings.replays, len(seen)))
    await _replay(sample, result)
    result.seconds = time.monotonic() - began
    return result


async def _run(
    client: Client, settings: Settings, path: Path, world: World, result: Result
) -> list[tuple[Closed, WorkflowHistory]]:
    queue = f"chaos-{uuid.uuid4().hex[:10]}"
    address = client.service_client.config.target_host
    caches = settings.cache.split(",")
    async with Crew([(address, queue, str(path), cache) for cache in caches]) as crew:
        seeds = range(settings.seed * 10_000, settings.seed * 10_000 + settings.orders)
        orders = [await Order.start(client, queue, seed, world) for seed in seeds]
        with suppress(TimeoutError):  # what is still open then is found by the checks
            async with asyncio.timeout(settings.seconds + PATIENCE), asyncio.TaskGroup() as group:
                killer = group.create_task(crew.keep_killing(settings.every, settings.seconds))
                await asyncio.gather(*(order.close() for order in orders))
                killer.cancel()
        result.counts["kills"] = crew.killed
        return await asyncio.gather(*(order.look() for order in orders))


async def _replay(sample: list[tuple[Closed, WorkflowHistory]], result: Result) -> None:
    replayer = Replayer(workflows=[ChaosOrder], plugins=[CompensationPlugin()])
    for closed, history in sample:
        replayed = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        if replayed.replay_failure is not None:
            faults = result.faults.setdefault(closed.plan.seed, [])
            faults.append(f"replay: {replayed.replay_failure!r}")
    result.counts["replayed"] = len(sample)


async def _main(settings: Settings) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        server = await WorkflowEnvironment.start_local(
            dev_server_existing_path=binary("temporal"), dev_server_log_level="never"
        )
        async with server:
            return await chaos(server.client, settings, Path(folder))


def main() -> int:
    """Run from the command line; 1 means that something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=Random().randrange(10_000))
    for option in fields(Settings)[1:]:
        kind = type(option.default)
        parser.add_argument(f"--{option.name}", type=kind, default=option.default)
    settings = Settings(**vars(parser.parse_args()))
    sys.stdout.write(f"{settings.command}\n")
    result = asyncio.run(_main(settings))
    sys.stdout.write(f"{result}\n")
    return 1 if result.faults else 0


if __name__ == "__main__":
    sys.exit(main())
