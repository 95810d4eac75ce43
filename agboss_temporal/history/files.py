"""Reading an exported history."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, Final

from google.protobuf.json_format import ParseError
from temporalio.client import WorkflowHistory

from agboss_temporal.core.errors import HistoryError

_GZIP: Final = b"\x1f\x8b"


def load(path: str | os.PathLike[str]) -> WorkflowHistory:
    """Read a history from a file.

    Args:
        path: What ``temporal workflow show -o json`` writes or the Web UI downloads, as it is or
            gzipped.

    Raises:
        HistoryError: It is not an exported history.
        OSError: It cannot be read.
    """
    return parse(Path(path).read_bytes())


def parse(data: bytes) -> WorkflowHistory:
    """Read a history from the bytes of an export."""
    try:
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
        return _history(json.loads(data))
    except (ValueError, RecursionError, OSError, EOFError, ParseError) as err:
        raise HistoryError(0, f"this is not an exported history: {type(err).__name__}") from err


def _history(found: Any) -> WorkflowHistory:
    if isinstance(found, list):
        found = {"events": found}
    if isinstance(found, dict) and "events" not in found and "history" in found:
        found = found["history"]
    history = WorkflowHistory.from_json("", found)
    if not history.events:
        raise HistoryError(0, "the exported history has no events")
    started = history.events[0].workflow_execution_started_event_attributes
    return WorkflowHistory(started.workflow_id, history.events)
