"""The ledger agrees with a naive model of itself, whatever happens to a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry, Step
from agboss_temporal.core.errors import IllegalTransitionError
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.scope import Scope
from tests.unit.strategies import DOUBTS, contracts, payloads, units
from tests.unit.test_ledger_table import MEANING


@dataclass
class Row:
    """What the model knows of an entry."""

    key: str
    contract: Contract
    unit: tuple[int, ...]
    state: str = "running"
    sequence: int = 0

    @property
    def moves(self) -> bool:
        return self.state in MEANING


class LedgerModel(RuleBasedStateMachine):
    """Drives a ledger and a list of rows side by side."""

    entries: Bundle[Entry] = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.rows: list[Row] = []
        self.begun: list[Entry] = []
        self.settled = 0

    def row(self, entry: Entry) -> Row:
        [row] = [r for r in self.rows if r.key == entry.key]
        return row

    @rule(target=entries, contract=contracts, unit=units)
    def begin(self, contract: Contract, unit: tuple[int, ...]) -> Entry:
        number = len(self.rows) + 1
        self.rows.append(Row(f"k-{number}", contract, unit))
        entry = self.ledger.begin(Entry(f"k-{number}", contract, number, unit=unit))
        self.begun.append(entry)
        return entry

    @rule(entry=entries, raw=st.none() | payloads)
    def complete(self, entry: Entry, raw: Any) -> None:
        if self.step(entry, "complete", lambda: self.ledger.complete(entry, raw)):
            assert entry.raw == raw
            assert entry.outcome == "completed"
            self.number(entry)

    @rule(entry=entries, kind=st.sampled_from(DOUBTS))
    def doubt(self, entry: Entry, kind: str) -> None:
        if self.step(entry, "doubt", lambda: self.ledger.doubt(entry, kind)):
            assert entry.doubt == kind
            assert entry.outcome == "unknown"
            self.number(entry)

    @rule(entry=entries, step=st.sampled_from([s for s in Step if s not in ("complete", "doubt")]))
    def move(self, entry: Entry, step: Step) -> None:
        self.step(entry, step.value, lambda: self.ledger.move(entry, step))

    @rule(committer=st.sampled_from(["ship", "bill", "other"]), unit=units)
    def seal(self, committer: str, unit: tuple[int, ...]) -> None:
        expected = [
            r
            for r in self.rows
            if r.state in ("open", "in_doubt")
            and r.contract.committer == committer
            and (r.unit == unit[: len(r.unit)] or unit == r.unit[: len(unit)])
        ]
        self.sealed(self.ledger.seal(committer, unit), expected)

    @rule()
    def finish(self) -> None:
        self.sealed(self.ledger.finish(), [r for r in self.rows if r.state == "open"])

    @rule()
    def close(self) -> None:
        running = [r for r in self.rows if r.state == "running"]
        found = self.ledger.close()
        assert [e.key for e in found] == [r.key for r in running]
        for entry in found:
            self.row(entry).state = "in_doubt"
            assert entry.doubt == "abandoned"
            self.number(entry)

    def step(self, entry: Entry, step: str, act: Any) -> bool:
        """Do a step if the model says it is legal, else see it refused."""
        row = self.row(entry)
        target = MEANING.get(row.state, {}).get(step)
        if target is not None:
            act()
            row.state = target
            return True
        with pytest.raises(IllegalTransitionError):
            act()
        return False

    def number(self, entry: Entry) -> None:
        self.settled += 1
        self.row(entry).sequence = self.settled

    def sealed(self, found: list[Entry], expected: list[Row]) -> None:
        assert [e.key for e in found] == [r.key for r in expected]
        for row in expected:
            row.state = "sealed"

    @invariant()
    def every_entry_is_where_the_model_says(self) -> None:
        assert [(e.key, e.state, e.sequence) for e in self.begun] == [
            (r.key, r.state, r.sequence) for r in self.rows
        ]
        assert list(self.ledger) == self.ledger.pending()

    @invariant()
    def sequence_numbers_count_what_settled(self) -> None:
        given = sorted(r.sequence for r in self.rows if r.sequence)
        assert given == list(range(1, self.settled + 1))

    @invariant()
    def the_lists_agree(self) -> None:
        assert keys(self.ledger.pending()) == [r.key for r in self.rows if r.moves]
        assert keys(self.ledger.open_entries()) == [r.key for r in self.rows if r.state == "open"]
        for unit in [(), (0,), (1, 2)]:
            inside = [r for r in self.rows if r.unit[: len(unit)] == unit]
            opened = [r for r in inside if r.state == "open"]
            doubted = [
                r for r in inside if r.state == "in_doubt" and r.contract.on_unknown == "undo"
            ]
            assert keys(self.ledger.to_undo(Scope(unit))) == [
                r.key for r in inside if r in opened or r in doubted
            ]


def keys(entries: list[Entry]) -> list[str]:
    return [e.key for e in entries]


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
