"""Lets a test act while a workflow task is in the middle of its code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Meanwhile:
    """Where workflow code waits in its thread, so that what the test does is in the next task.

    Only for workflows outside the sandbox. In a replay nobody waits.
    """

    def __init__(self) -> None:
        self._here: dict[str, threading.Event] = {}
        self._go: dict[str, threading.Event] = {}

    def hold(self, workflow_id: str) -> None:
        """Wait, in workflow code, until the test has acted; shorter than Temporal's patience."""
        self._of(self._here, workflow_id).set()
        self._of(self._go, workflow_id).wait(1.5)

    @asynccontextmanager
    async def during(self, workflow_id: str) -> AsyncIterator[None]:
        """Act, in the test, while the workflow's task is held."""
        here = self._of(self._here, workflow_id)
        assert await asyncio.to_thread(here.wait, 20), "the workflow never came to its hold"
        try:
            yield
        finally:
            self._of(self._go, workflow_id).set()

    @staticmethod
    def _of(events: dict[str, threading.Event], name: str) -> threading.Event:
        return events.setdefault(name, threading.Event())


MEANWHILE = Meanwhile()
