"""Runs whose history is said to be full, and the children that then undo for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from temporalio.api.history.v1 import HistoryEvent
from temporalio.worker import Interceptor, ReplayerConfig, WorkerConfig

from agboss_temporal import CompensationPlugin
from agboss_temporal.core import wire
from agboss_temporal.core.budget import HistoryBudget
from agboss_temporal.interceptors import CompensationInterceptor
from tests.support.acts import WORLD
from tests.support.harness import Handle, Harness, events_of, until


class Budgeted(CompensationPlugin):
    """A plugin whose runs have another budget than the server's limits give."""

    def __init__(self, budget: HistoryBudget) -> None:
        super().__init__()
        self._budget = budget

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        config = super().configure_worker(config)
        self._give(config.get("interceptors") or [])
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        config = super().configure_replayer(config)
        self._give(config.get("interceptors") or [])
        return config

    def _give(self, interceptors: Iterable[Interceptor]) -> None:
        for each in interceptors:
            if isinstance(each, CompensationInterceptor):
                each.budget = self._budget


@asynccontextmanager
async def budgeted(harness: Harness, budget: HistoryBudget) -> AsyncIterator[Harness]:
    """Yield a harness on the same server with another budget; replay what it ran."""
    own = Harness(
        harness.plain,
        cache=harness.cache,
        plugin=Budgeted(budget),
        data_converter=harness.client.data_converter,
    )
    yield own
    await own.replay_all()


def initiated(events: Iterable[HistoryEvent]) -> list[HistoryEvent]:
    """Find where a run starts the children that undo for it."""
    return [
        e
        for e in events
        if e.start_child_workflow_execution_initiated_event_attributes.workflow_type.name
        == "agboss.recovery"
    ]


def ids(events: Iterable[HistoryEvent]) -> list[str]:
    """Name the children that undo for a run, in order."""
    return [
        e.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for e in initiated(events)
    ]


def headers(events: Iterable[HistoryEvent]) -> list[wire.CallRecord]:
    """Read what the headers of those children say."""
    return [
        wire.decode(
            e.start_child_workflow_execution_initiated_event_attributes.header.fields[
                wire.HEADER
            ].data
        )
        for e in initiated(events)
    ]


async def children(harness: Harness, handle: Handle, count: int = 0) -> list[Handle]:
    """Wait until so many children were started; their histories are replayed too."""

    async def there() -> bool:
        return len(ids(await events_of(handle))) >= count

    await until(there)
    found = [harness.client.get_workflow_handle(i) for i in ids(await events_of(handle))]
    known = {each.id for each, _ in harness._runs}
    flows = next(flows for each, flows in harness._runs if each.id == handle.id)
    harness._runs.extend((child, flows) for child in found if child.id not in known)
    return found


def did(handles: Iterable[Handle]) -> list[list[str]]:
    """Say what the undos of each child did."""
    return [WORLD.of(handle.id) for handle in handles]
