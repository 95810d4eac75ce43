"""What histories say where a codec encrypts their payloads (CASES D3)."""

from __future__ import annotations

import json

import pytest

from agboss_temporal import history
from agboss_temporal.core.budget import HistoryBudget
from agboss_temporal.views import text
from tests.integration import limit_flows as flows
from tests.integration.codec import CONVERTERS
from tests.support.acts import ACTIVITIES
from tests.support.harness import Harness
from tests.support.limits import budgeted, children

SECRET = "clear-text-of-a-user"
FULL = HistoryBudget(events=1, per_child=2)


@pytest.mark.parametrize("converter", [c for c in CONVERTERS if c.endswith("encrypted")])
async def test_d3_no_clear_text_is_in_histories_nor_in_what_is_made_of_them(
    harness: Harness, converter: str
) -> None:
    items = [f"{SECRET}-{n}" for n in range(3)]
    secret = harness.with_(data_converter=CONVERTERS[converter])
    async with (
        budgeted(secret, FULL) as own,
        own.worker([flows.Keeps], [*ACTIVITIES, *flows.EVERYTHING]) as queue,
    ):
        handle = await own.start(queue, flows.Keeps.run, items)
        done = await own.finish(handle)
        parts = await children(own, handle)
        histories = [done.history, *[await part.fetch_history() for part in parts]]
    assert [effect for effect in done.world if effect.startswith("keep")] == [
        f"keep:{item}" for item in items
    ], "the activities did get it"
    for number, each in enumerate(histories):
        assert SECRET.encode() not in b"".join(e.SerializeToString() for e in each.events)
        ledger = await history.ledger(each, data_converter=CONVERTERS[converter])
        assert not ledger.unreadable
        assert {str(entry.state) for entry in ledger} == {"undone"}
        assert SECRET not in json.dumps(ledger.to_dict())
        assert SECRET not in text.draw(ledger)
        blind = await history.ledger(each)
        kinds = {each.what for each in blind.unreadable}
        assert kinds == ({"hand-over"} if number == 0 else {"hand-over", "undo"})
        assert "undone" not in {str(entry.state) for entry in blind} or number > 0
        assert SECRET not in repr(blind)
