"""Watches what runs try to do while the SDK evicts them from the cache.

The SDK swallows it, so the outside world shows nothing of it. It must be nothing all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from temporalio.worker._workflow_instance import _WorkflowInstanceImpl

# Not the start of activities: a program's own code may catch what an eviction throws into it.
WATCHED = ("patch", "continue as new", "set current details")


@contextmanager
def watched() -> Iterator[dict[str, list[str]]]:
    """Note, by workflow id, what evicted runs try to do."""
    tried: dict[str, list[str]] = {}
    allowed = _WorkflowInstanceImpl._assert_not_read_only

    def noted(self: Any, action: str, **options: Any) -> None:
        if self._deleting and action in WATCHED:
            tried.setdefault(self._info.workflow_id, []).append(action)
        allowed(self, action, **options)

    with patch.object(_WorkflowInstanceImpl, "_assert_not_read_only", noted):
        yield tried
