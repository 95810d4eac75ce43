"""A run as JSON, for programs. It holds names, keys, states and times, never a payload."""

from __future__ import annotations

import json

from agboss_temporal.core.run_ledger import RunLedger


def draw(ledger: RunLedger) -> str:
    """Write a run as JSON, in ASCII, so that no character in it acts on a terminal."""
    text = json.dumps(ledger.to_dict(), indent=2)
    return text.replace("\x7f", "\\u007f") + "\n"
