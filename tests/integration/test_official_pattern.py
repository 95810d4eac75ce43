"""The five cases that the hand-written pattern gets wrong, each proved to be right here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from temporalio.client import WorkflowFailureError

from tests.integration.official_flows import ByHand, Declared
from tests.support.acts import WORLD
from tests.support.harness import Handle, Harness, events_of, names, until, until_did, until_event

CASES = ["timer", "wait", "activity", "undo", "group"]


@pytest.fixture(autouse=True)
def _broken() -> Iterator[None]:
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")


async def trouble(case: str, handle: Handle) -> None:
    """Cancel the run at the moment that the case is about."""
    if case in ("timer", "wait"):
        await until_event(handle, "ActivityTaskCompleted", 2)
        await until_event(handle, "WorkflowTaskCompleted", 3)
        await handle.cancel()
    if case == "activity":
        await until_did(handle, f"at:{handle.id}")
        await handle.cancel()
        await until_event(handle, "WorkflowExecutionCancelRequested")

        async def heard() -> bool:
            seen = names(await events_of(handle))
            return "WorkflowTaskCompleted" in seen[seen.index("WorkflowExecutionCancelRequested") :]

        await until(heard)
        WORLD.gate(handle.id).set()
        await until_did(handle, "charge:late")


def left_behind(world: list[str]) -> set[str]:
    """Name what was done and not undone."""
    undone = {e.split(":")[1] for e in world if e.startswith(("refund:", "release:"))}
    return {e.split(":")[1] for e in world if e.startswith(("charge:", "reserve:"))} - undone


@pytest.mark.parametrize("case", CASES)
async def test_declared_undos_leave_nothing_behind(harness: Harness, case: str) -> None:
    async def meanwhile(handle: Handle) -> None:
        await trouble(case, handle)

    done = await harness.run(Declared, case, meanwhile=meanwhile)
    assert left_behind(done.world) == ({"broken"} if case == "undo" else set())
    if case == "undo":
        assert done.report.status == "partial"
        assert [v for v in done.verdicts if v[1] == "failed"] == [("reserve", "failed")]
    else:
        assert done.report.status == "completed"
    assert done.status == ("CANCELED" if case in ("timer", "wait", "activity") else "FAILED")


@pytest.mark.parametrize("case", CASES)
async def test_the_pattern_by_hand_does_not(harness: Harness, case: str) -> None:
    """The control: the same workflow and the same trouble, undone by hand."""
    async with harness.worker([ByHand], client=harness.plain) as queue:
        handle = await harness.plain.start_workflow(
            ByHand.run, case, id=f"by-hand-{case}-{queue}", task_queue=queue
        )
        await trouble(case, handle)
        if case == "group":
            await until_event(handle, "WorkflowTaskFailed")
            await handle.terminate()
        with suppress(WorkflowFailureError):
            await handle.result()
    hidden = case == "undo" and "release:broken" not in WORLD.of(handle.id)
    assert hidden or left_behind(WORLD.of(handle.id))
