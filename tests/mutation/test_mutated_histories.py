"""Histories that were tampered with: a clear error, or what a second reading finds as well."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agboss_temporal import history
from agboss_temporal.history import HistoryError, RunLedger
from agboss_temporal.history.files import parse
from tests.mutation.events import Impossible
from tests.mutation.mutate import mutated
from tests.mutation.reread import Reread

HERE = Path(__file__).parent
RECORDED = sorted(
    [*(HERE.parent / "replay" / "histories").glob("*.json"), *(HERE / "histories").glob("*.json")]
)
SEEDS = (20261201, 20261202)
COUNT = 200


def exported(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def compared(ledger: RunLedger) -> dict[str, Any]:
    """Return what a ledger says of that which is read twice."""
    report = ledger.report
    settled = [e for e in ledger if e.sequence]
    return {
        "entries": {
            e.key: (
                e.contract.action,
                str(e.state),
                e.doubt,
                e.handed_to,
                tuple((undo.event_id, undo.outcome) for undo in e.undos),
            )
            for e in ledger
        },
        "order": [e.key for e in sorted(settled, key=lambda e: e.sequence)],
        "unwinds": {u.ordinal: (u.trigger, u.cause, u.unit, u.status) for u in report.unwinds},
        "verdicts": sorted(
            ((e.unwind, e.key, e.verdict, e.reason) for e in report.entries), key=repr
        ),
        "in_doubt": sorted((d.key, d.kind, d.role) for d in report.in_doubt),
        "children": [
            (c.event_id, c.workflow_type, c.workflow_id, c.end, c.takes_over)
            for c in ledger.children
        ],
        "end": ledger.end.how if ledger.end is not None else None,
        "unrecorded": [call.event_id for call in ledger.unrecorded],
        "unreadable": [(each.event_id, each.what) for each in ledger.unreadable],
    }


async def outcomes(export: dict[str, Any]) -> tuple[Any, Any]:
    """Read a history twice; an error is a text."""
    mine: Any
    theirs: Any
    try:
        mine = compared(await history.ledger(parse(json.dumps(export).encode())))
    except HistoryError as err:
        mine = str(err)
    try:
        theirs = Reread(copy.deepcopy(export)).read()
    except Impossible as err:
        theirs = str(err)
    return mine, theirs


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_both_readings_agree_on_what_was_recorded(path: Path) -> None:
    mine, theirs = await outcomes(exported(path))
    assert mine == theirs
    assert isinstance(mine, dict)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_history_that_was_tampered_with_is_refused_or_read_as_it_says(seed: int) -> None:
    """Either both readings refuse it, or both find the same."""
    rng = Random(seed)
    errors: Counter[str] = Counter()
    read = changed = 0
    for number in range(COUNT):
        path = RECORDED[number % len(RECORDED)]
        original = exported(path)
        export = mutated(original, rng)
        mine, theirs = await outcomes(export)
        where = f"number {number}, from {path.stem}: {mine if isinstance(mine, str) else theirs}"
        assert isinstance(mine, str) == isinstance(theirs, str), where
        if isinstance(mine, str):
            assert mine.startswith("event ") or "history" in mine, mine
            errors[mine.partition(": ")[2].partition(" ")[0]] += 1
        else:
            assert mine == theirs, where
            read += 1
            changed += mine != (await outcomes(original))[0]
    assert read >= COUNT // 4
    assert changed >= COUNT // 8
    assert sum(errors.values()) >= COUNT // 4
    assert len(errors) >= 5, errors
