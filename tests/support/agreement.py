"""Does the ledger from a run's history agree with the one in its workflow, and with the world?"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from agboss_temporal import history as histories
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.report import CompensationReport, EntryReport
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.run import Run
from tests.support.acts import WORLD

CODE_RAN = ("completed", "failed", "cancelled", "continued_as_new")
"""The ends after which the workflow itself has seen all of its history."""

EFFECTS = {"charge": "refund", "reserve": "release"}


class Seen:
    """What one replayed workflow has in memory at its end."""

    def __init__(self, run: Run, entries: list[Entry]) -> None:
        self.run = run
        self.entries = entries


@contextmanager
def watching() -> Iterator[dict[str, Seen]]:
    """Keep the runs that replays build, each with all of its entries, by the run's id."""
    seen: dict[str, Seen] = {}

    class WatchedRun(Run):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._entries: list[Entry] = []
            begin = self.ledger.begin

            def note(entry: Entry) -> Entry:
                self._entries.append(entry)
                return begin(entry)

            self.ledger.begin = note  # type: ignore[method-assign]

        def enter(self) -> None:
            first = self._loop is None
            super().enter()
            if first:
                seen[workflow.info().run_id] = Seen(self, self._entries)

    with mock.patch("agboss_temporal_interceptors.interceptor.Run", WatchedRun):
        yield seen


async def check(
    history: WorkflowHistory, seen: Mapping[str, Seen], converter: DataConverter
) -> RunLedger | None:
    """Compare what a replay has seen of a history with what the history says by itself.

    Returns:
        What the history says; ``None`` where the two cannot be compared.
    """
    ledger = await histories.ledger(history, data_converter=converter)
    inside = seen.get(history.run_id)
    if inside is None or ledger.end is None or ledger.end.how not in CODE_RAN:
        return None
    run = inside.run
    if ledger.unreadable or ledger.unrecorded:
        ledger = await histories.ledger(history, data_converter=converter, contracts=run.contracts)
    assert not ledger.unreadable, ledger.unreadable
    _check_entries(ledger, inside)
    _check_report(ledger.report, run.report())
    return ledger


def _check_entries(ledger: RunLedger, seen: Seen) -> None:
    known = {e.key: e for e in ledger}
    _same("keys", len(known), len(ledger.entries))
    inside = {e.key: e for e in seen.entries if e.key in known or str(e.state) != "no_effect"}
    _same("entries", _states(known.values()), _states(inside.values()))
    order = sorted(known, key=lambda key: known[key].sequence)
    within = sorted(known, key=lambda key: (inside[key].sequence, order.index(key)))
    _same("order", order, within)


def _same(what: str, told: object, inside: object) -> None:
    assert told == inside, f"{what}: the history says {told}, the workflow {inside}"


def _states(entries: Any) -> dict[str, tuple[str, str, str | None]]:
    return {e.key: (e.contract.action, str(e.state), e.doubt) for e in entries}


def _check_report(found: CompensationReport, inside: CompensationReport) -> None:
    """All that a history can know is the same."""
    known = _comparable(inside)
    for name, told in _comparable(found).items():
        _same(name, told, known[name])
    for mine, theirs in zip(found.unwinds, inside.unwinds, strict=True):
        assert mine.started_at is not None
        assert theirs.started_at is not None
        assert mine.started_at >= theirs.started_at - timedelta(seconds=1)
        assert _about(mine.ended_at, theirs.ended_at)
    for entry, other in zip(_by_key(found), _by_key(inside), strict=True):
        assert _about(entry.started_at, other.started_at)
        assert _about(entry.ended_at, other.ended_at)


def _by_key(report: CompensationReport) -> list[EntryReport]:
    """Sort the entries: where undos overlap, history does not show the order of the plan."""
    return sorted(report.entries, key=lambda e: (e.unwind, e.key))


def _about(one: datetime | None, other: datetime | None) -> bool:
    """Tell whether times are the same; the time-skipping server's are a little off its events."""
    if one is None or other is None:
        return one is other
    return abs(one - other) < timedelta(seconds=1)


def _comparable(report: CompensationReport) -> dict[str, Any]:
    plain = dataclasses.asdict(dataclasses.replace(report, entries=tuple(_by_key(report))))
    for each in (*plain["unwinds"], *plain["entries"]):
        del each["started_at"], each["ended_at"]
    del plain["also_failed"]
    return plain


def check_world(ledger: RunLedger) -> None:
    """What the ledger says has happened, has."""
    for action, undo in EFFECTS.items():
        mine = [e for e in ledger if e.contract.action == action and not e.carried]
        completed = [e for e in mine if e.doubt is None and e.settled_event_id is not None]
        completed = [e for e in completed if str(e.state) != "no_effect"]
        assert _did(ledger.workflow_id).count(action) >= len(completed), action
        ran: dict[str, int] = {}
        for entry in ledger:
            if str(entry.state) == "undone" and entry.contract.undo == undo and entry.undos:
                by = entry.undos[-1].by or ledger.workflow_id
                ran[by] = ran.get(by, 0) + 1
        for by, count in ran.items():
            assert _did(by).count(undo) >= count, (undo, by)


def _did(workflow_id: str) -> list[str]:
    return [effect.partition(":")[0] for effect in WORLD.of(workflow_id)]
