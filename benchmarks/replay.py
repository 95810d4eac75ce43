"""CPU of replaying long histories, recorded and replayed without the plugin and with it."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from benchmarks.shape import MANY
from benchmarks.stats import Spread, ratios
from benchmarks.variants import DECLARED, PLAIN, Variant, rotated, sandbox

BATCHES: Final[Mapping[str, int]] = {"one at a time": 1, "in batches of 50": 50}

COMPARED: Final = (PLAIN, DECLARED)

Histories = dict[tuple[str, str], WorkflowHistory]
"""By variant's name and by how the actions were batched."""


@dataclass(frozen=True)
class Replays:
    """What replaying one kind of history took, round by round.

    Attributes:
        batching: How the actions were batched.
        actions: How many there were.
        plain_ms: CPU of each round without the plugin.
        declared_ms: CPU of each round with it.
    """

    batching: str
    actions: int
    plain_ms: list[float]
    declared_ms: list[float]

    @property
    def ratio(self) -> Spread:
        """How much more a replay takes with the plugin, round by round."""
        return ratios(self.declared_ms, self.plain_ms)

    @property
    def best(self) -> float:
        """The same, of the fastest rounds: what the machine's other work disturbs least."""
        return min(self.declared_ms) / min(self.plain_ms)

    @property
    def added_us(self) -> Spread:
        """Added microseconds for each action, round by round."""
        pairs = zip(self.declared_ms, self.plain_ms, strict=True)
        return Spread.of(1000 * (after - before) / self.actions for after, before in pairs)

    @property
    def best_added_us(self) -> float:
        """Added microseconds for each action, of the fastest rounds."""
        return 1000 * (min(self.declared_ms) - min(self.plain_ms)) / self.actions


async def record(client: Client, actions: int) -> Histories:
    """Run many actions on both workers, in each batching, and fetch what they left."""
    wanted = [(variant, batching) for variant in COMPARED for batching in BATCHES]
    print(f"replay: recording {len(wanted)} runs of {actions} actions", file=sys.stderr)
    found = await asyncio.gather(*(_record(client, v, b, actions) for v, b in wanted))
    return {(v.name, b): history for (v, b), history in zip(wanted, found, strict=True)}


async def _record(client: Client, variant: Variant, batching: str, actions: int) -> WorkflowHistory:
    batch = BATCHES[batching]
    handle = await client.start_workflow(
        MANY,
        args=[actions, batch],
        id=f"{variant.letter}-many-{batch:04d}",
        task_queue=variant.queue,
    )
    await handle.result()
    return await handle.fetch_history()


async def measure(histories: Histories, *, actions: int, rounds: int) -> list[Replays]:
    """Replay every history once a round, in rotating order, after one round that is not counted."""
    replayers = {variant.name: replayer(variant) for variant in COMPARED}
    taken: dict[tuple[str, str], list[float]] = {which: [] for which in histories}
    for number in range(-1, rounds):
        for batching in BATCHES:
            for variant in rotated(number, COMPARED):
                which = (variant.name, batching)
                spent = await _replay_ms(replayers[variant.name], histories[which])
                if number >= 0:
                    taken[which].append(spent)
        print(f"replay: round {number + 1} of {rounds}", file=sys.stderr)
    return [
        Replays(batching, actions, taken[PLAIN.name, batching], taken[DECLARED.name, batching])
        for batching in BATCHES
    ]


def replayer(variant: Variant) -> Replayer:
    """Make the replayer that a variant's histories need."""
    return Replayer(
        workflows=variant.workflows, workflow_runner=sandbox(), plugins=variant.plugins()
    )


async def _replay_ms(by: Replayer, history: WorkflowHistory) -> float:
    gc.collect()
    start = time.process_time()
    await by.replay_workflow(history)
    return 1000 * (time.process_time() - start)
