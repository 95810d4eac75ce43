"""A real Prometheus scrapes a real worker: the dashboard and the alerts show what happened."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import socket
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import Client, WorkflowFailureError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from agboss_temporal import CompensationPlugin
from samples.order.activities import ACTIVITIES
from samples.order.models import Order, Payment, Shipment
from samples.order.starter import make_order
from samples.order.workflow import OrderWorkflow
from samples.order.world import World
from samples.traced.telemetry import METRICS
from tests.docker.flows import Defective, Stuck, Unrecorded, send_letter
from tests.docker.tools import FOLDER, queries, tool

QUEUE = "orders"
PATIENCE = timedelta(seconds=100)


class Prometheus:
    """Prometheus's own API."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def ask(self, path: str, **arguments: str) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"

        def get() -> Any:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]

        return await asyncio.to_thread(get)

    async def values(self, expr: str) -> list[float]:
        """Return the numbers that a query yields now."""
        found = (await self.ask("query", query=expr))["result"]
        numbers = [float(each["value"][1]) for each in found]
        return [number for number in numbers if not math.isnan(number)]

    async def alerts(self) -> dict[tuple[str, str], str]:
        """Return the state of each alert, by its name and sign."""
        found = (await self.ask("alerts"))["alerts"]
        return {
            (each["labels"]["alertname"], each["labels"].get("sign", "")): each["state"]
            for each in found
        }


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


async def until(what: Callable[[], Awaitable[bool]], *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not await what():
            await asyncio.sleep(0.2)


@asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[Prometheus]:
    """Run Prometheus with the stack's own rules, and with the test's worker as its target."""
    config = yaml.safe_load((FOLDER / "prometheus" / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(FOLDER / "prometheus" / "alerts.yml")]
    config["scrape_configs"] = [{"job_name": "worker", "static_configs": [{"targets": [target]}]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = free_address()
    process = await asyncio.create_subprocess_exec(
        tool("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    )
    found = Prometheus(address)

    async def scraping() -> bool:
        with suppress(OSError):
            return await found.values('up{job="worker"}') == [1]
        return False

    try:
        await until(scraping)
        yield found
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The sample's world, whose bank and carrier fail the orders that are named for it."""
    refund, ship = World.refund, World.ship

    def refunds(self: World, key: str, payment: Payment) -> None:
        if payment.order_id == "given-up":
            raise ApplicationError("the account is closed", non_retryable=True)
        if payment.order_id == "stuck":
            raise ConnectionError("the bank is down")
        refund(self, key, payment)

    def ships(self: World, key: str, order: Order) -> Shipment:
        if order.id == "in-doubt":
            raise ApplicationError("no answer", type="Outage", non_retryable=True)
        return ship(self, key, order)

    monkeypatch.setattr(World, "refund", refunds)
    monkeypatch.setattr(World, "ship", ships)
    monkeypatch.setenv("ORDER_WORLD", str(tmp_path / "world.db"))


async def tell_the_stories(client: Client) -> None:
    """Success, failure, cancel, doubt, an undo that gives up, and what must not happen."""

    async def start(run: Any, order: Order) -> Any:
        return await client.start_workflow(
            run, order, id=f"live-{order.id}", task_queue=QUEUE, execution_timeout=PATIENCE
        )

    world = World.from_env()
    good = await start(OrderWorkflow.run, make_order("good", quantity=1))
    await good.result()
    for order in (
        make_order("refused", fail="carrier", quantity=1),
        make_order("given-up", fail="carrier", quantity=1),
        make_order("in-doubt", quantity=1),
    ):
        with pytest.raises(WorkflowFailureError):
            await (await start(OrderWorkflow.run, order)).result()
    world.books.delay("charge", 30)
    cancelled = await start(OrderWorkflow.run, make_order("cancelled", quantity=1))

    async def charged() -> bool:
        return world.books.tally("cancelled", "charge").effects == 1

    await until(charged)
    await cancelled.cancel()
    world.books.delay("charge", 0)
    with pytest.raises(WorkflowFailureError):
        await cancelled.result()
    await (await start(Unrecorded.run, make_order("unrecorded", quantity=1))).result()
    await start(Stuck.run, make_order("stuck", quantity=1))
    await start(Defective.run, make_order("defective"))


@pytest.mark.slow
@pytest.mark.usefixtures("world")
async def test_the_dashboard_and_the_alerts_show_what_happened(
    server: WorkflowEnvironment, tmp_path: Path
) -> None:
    metrics = dataclasses.replace(METRICS, bind_address=free_address())
    client = await Client.connect(
        server.client.service_client.config.target_host,
        runtime=Runtime(telemetry=TelemetryConfig(metrics=metrics)),
        data_converter=pydantic_data_converter,
        plugins=[CompensationPlugin()],
    )
    with ThreadPoolExecutor(max_workers=10) as threads:
        async with (
            Worker(
                client,
                task_queue=QUEUE,
                workflows=[OrderWorkflow, Stuck, Unrecorded, Defective],
                activities=[*ACTIVITIES, send_letter],
                activity_executor=threads,
            ),
            prometheus(tmp_path, metrics.bind_address) as found,
        ):
            await tell_the_stories(client)
            try:
                await everything_is_shown(found)
            finally:
                for left in ("stuck", "defective"):
                    await client.get_workflow_handle(f"live-{left}").terminate()


async def everything_is_shown(found: Prometheus) -> None:
    failing = 'sum(agboss_compensation_undo_attempts_total{result="error"})'
    tasks = "sum(temporal_workflow_task_execution_failed_total)"

    async def scraped() -> bool:
        return await found.values(f"{failing} >= 4 and {tasks} >= 1") != []

    await until(scraped)
    asked = list(queries())
    empty = [(title, expr) for title, expr in asked if not await found.values(expr)]
    assert empty == []
    figures = {title: await found.values(expr) for title, expr in asked}
    assert figures["Unwinds begun"] == [5]
    assert figures["Unwinds not ended"] == [1]
    assert figures["Undos given up"] == [1]
    assert figures["In doubt"] == [1]
    assert figures["Unrecorded"] == [1]
    assert figures["Open actions"] == [1]
    rules = yaml.safe_load((FOLDER / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    silent = [rule["alert"] for rule in rules if not await found.values(rule["expr"])]
    assert silent == []

    async def told() -> bool:
        return await found.alerts() == {
            ("UndoGaveUp", ""): "firing",
            ("UnrecordedActions", ""): "firing",
            ("UnwindStuck", "attempts-fail"): "pending",
            ("UnwindStuck", "no-end"): "pending",
        }

    await until(told)
