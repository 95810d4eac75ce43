"""Compares a text with the one that is kept. ``AGBOSS_GOLDEN=write`` keeps what is there now."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("AGBOSS_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    assert text == path.read_bytes().decode(), f"{name} differs; look at it, then keep it"
