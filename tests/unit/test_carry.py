"""What a run that continues as new hands on is read as it was written, and by older rules too."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core import carry
from agboss_temporal.core.contract import Contract

CONTRACT = Contract("reserve", undo="release")


def rows(data: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        zlib.decompress(base64.b64decode(json.loads(data)["z"]))
    )
    return found


@given(st.lists(st.none() | st.integers(0, 5), max_size=5))
def test_starts_are_read_as_they_were_written(starts: list[int | None]) -> None:
    entries = [carry.Carried(f"k-{n}", CONTRACT, after=after) for n, after in enumerate(starts)]
    assert carry.decode(carry.encode(entries, "run")) == entries


def test_sequential_code_writes_no_start() -> None:
    [row] = rows(carry.encode([carry.Carried("k-1", CONTRACT)], "run"))
    assert row == {"k": "k-1", "a": "reserve", "u": "release"}


def test_a_record_without_starts_reads_as_sequential() -> None:
    text = base64.b64encode(zlib.compress(b'[{"k":"k-1","a":"reserve","u":"release"}]')).decode()
    [entry] = carry.decode(json.dumps({"v": 1, "run": "r", "n": 1, "z": text}).encode())
    assert entry.after is None
