"""Orders come out right whatever is killed, fails or is cancelled.

The short form runs with every `make test`. ``CHAOS_ORDERS``, ``CHAOS_SECONDS`` (how long workers
are killed) and ``CHAOS_SEED`` make it longer or repeat it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.chaos.driver import PATIENCE, Settings, chaos

ORDERS = int(os.environ.get("CHAOS_ORDERS", 40))
SECONDS = float(os.environ.get("CHAOS_SECONDS", 10))
CACHE = os.environ.get("CHAOS_CACHE", "1000,0")
SEED = int(os.environ.get("CHAOS_SEED", Random().randrange(10_000)))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + PATIENCE + 60)
async def test_c2_e4_e6_f17_workers_are_killed(server: WorkflowEnvironment, tmp_path: Path) -> None:
    """The world is clean, each effect happened once, each undo was scheduled once, in order."""
    settings = Settings(SEED, orders=ORDERS, every=1.5, cache=CACHE, seconds=SECONDS)
    sys.stdout.write(f"{settings.command}\n")
    result = await chaos(server.client, settings, tmp_path)
    sys.stdout.write(f"{result}\n")
    assert not result.faults, str(result)
    assert result.counts["kills"]
