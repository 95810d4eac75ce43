"""A worker's real Prometheus endpoint, read as a dictionary."""

from __future__ import annotations

import asyncio
import re
import socket
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

OWN = "agboss_compensation_"

_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True)
class Endpoint:
    """The endpoint of one runtime, and a client whose workers report there."""

    address: str
    client: Client

    @classmethod
    async def open(cls, client: Client) -> Endpoint:
        """Make a runtime with an endpoint of its own, and a client on the same server."""
        address = f"127.0.0.1:{free_port()}"
        metrics = PrometheusConfig(
            bind_address=address,
            counters_total_suffix=True,
            unit_suffix=True,
            durations_as_seconds=True,
        )
        runtime = Runtime(telemetry=TelemetryConfig(metrics=metrics))
        target = client.service_client.config.target_host
        return cls(address, await Client.connect(target, runtime=runtime))

    async def scrape(self) -> list[Sample]:
        """Read the samples whose names are ours."""
        text = await asyncio.to_thread(self.text)
        found = [_SAMPLE.match(line) for line in text.splitlines() if line.startswith(OWN)]
        return [
            Sample(m["name"], dict(_LABEL.findall(m["labels"] or "")), float(m["value"]))
            for m in found
            if m is not None
        ]

    def text(self) -> str:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    async def totals(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Sum the samples of a metric by some of its labels."""
        sums: dict[tuple[str, ...], float] = {}
        for sample in await self.scrape():
            if sample.name == OWN + name:
                values = tuple(sample.labels.get(label, "") for label in labels)
                sums[values] = sums.get(values, 0) + sample.value
        return sums


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
