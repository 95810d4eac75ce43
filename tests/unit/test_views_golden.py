"""What the views show, whole: of runs made by hand, and of runs that took place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agboss_temporal import history
from agboss_temporal.core.run_ledger import RunLedger
from agboss_temporal.views import html_page, json_text, mermaid, svg, text
from tests.unit import golden_files, ledgers

VIEWS: dict[str, Callable[[RunLedger], str]] = {
    "txt": text.draw,
    "json": json_text.draw,
    "mmd": mermaid.draw,
    "svg": svg.draw,
    "html": html_page.draw,
}
MADE: dict[str, Callable[[], RunLedger]] = {
    "partial": ledgers.partial,
    "two_unwinds": ledgers.two_unwinds,
}
HISTORIES = Path(__file__).parents[1] / "replay" / "histories"


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("run", MADE)
def test_a_run_is_shown_whole(run: str, view: str) -> None:
    golden_files.check(f"{run}.{view}", VIEWS[view](MADE[run]()))


@pytest.mark.parametrize("run", ["running", "terminated", "finished", "hostile"])
def test_a_run_is_told_in_plain_text(run: str) -> None:
    golden_files.check(f"{run}.txt", text.draw(getattr(ledgers, run)()))


@pytest.mark.parametrize("view", ["mmd", "svg"])
def test_many_actions_are_folded_in_the_middle(view: str) -> None:
    golden_files.check(f"crowded.{view}", VIEWS[view](ledgers.crowded()))


@pytest.mark.parametrize(
    "name",
    [
        *("undo-fails", "join", "updates", "finished-child", "handed-over", "uncommitted"),
        *("delegated", "recovery"),
    ],
)
@pytest.mark.parametrize("view", ["txt", "mmd"])
async def test_a_recorded_run_is_shown(name: str, view: str) -> None:
    ledger = await history.ledger(history.load(HISTORIES / f"{name}.json"))
    golden_files.check(f"recorded-{name}.{view}", VIEWS[view](ledger))
