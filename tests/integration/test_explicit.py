"""Undos that the workflow's own code calls, and compensate()."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from temporalio.exceptions import ApplicationError

from tests.integration.explicit_flows import ByHand
from tests.support.acts import WORLD
from tests.support.harness import Handle, Harness, records, until_did, until_event


async def test_r8_the_returned_object_says_which_one(harness: Harness) -> None:
    done = await harness.run(ByHand, "identity")
    assert done.world == ["charge:same", "charge:same", "refund:same", "refund:same"]
    first, second = (r.action_key for r in records(done, "charge"))
    by_hand, automatic = records(done, "refund")
    assert (by_hand.explicit, by_hand.undoes) == (True, first)
    assert (automatic.explicit, automatic.undoes) == (False, second)


async def test_r8_an_equal_payload_says_which_one(harness: Harness) -> None:
    done = await harness.run(ByHand, "equal_payload")
    assert done.world == ["charge:one", "charge:two", "refund:one", "refund:two"]


async def test_r8_the_only_open_one_is_meant(harness: Harness) -> None:
    done = await harness.run(ByHand, "only_open")
    assert done.world == ["charge:one", "refund:a stranger"]


async def test_r8_if_several_remain_none_is_closed_and_it_is_said(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    done = await harness.run(ByHand, "ambiguous")
    assert done.world[2:] == ["refund:a stranger", "refund:two", "refund:one"]
    assert "closes none of them" in caplog.text
    assert "stranger" not in caplog.text
    assert records(done, "refund")[0].undoes == ""


async def test_f2_an_undo_called_twice_closes_once(harness: Harness) -> None:
    done = await harness.run(ByHand, "twice")
    assert done.world == ["charge:one", "refund:one", "refund:one"]
    first, second = records(done, "refund")
    assert first.undoes
    assert second.undoes == ""
    keys = [key for what, key in WORLD.keys[done.workflow_id] if what == "refund:one"]
    assert len(set(keys)) == 2


async def test_an_undo_before_any_action_does_what_it_says(harness: Harness) -> None:
    done = await harness.run(ByHand, "before_any")
    assert done.world == ["refund:never charged"]
    assert done.report.status == "none"


@pytest.fixture
def _broken_once() -> Iterator[None]:
    WORLD.broken.add("broken-once")
    yield
    WORLD.broken.discard("broken-once")


@pytest.mark.usefixtures("_broken_once")
async def test_a_failed_undo_by_hand_is_tried_again_at_the_end(harness: Harness) -> None:
    async def mend(handle: Handle) -> None:
        await until_did(handle, "note:the undo failed")

    done = await harness.run(ByHand, "fails", meanwhile=mend)
    assert done.verdicts == [("reserve", "failed"), ("charge", "undone")]
    assert [r.explicit for r in records(done, "release")] == [True, False]
    assert len({r.undoes for r in records(done, "release")}) == 1


async def test_compensate_is_idempotent(harness: Harness) -> None:
    done = await harness.run(ByHand, "compensate_twice")
    assert done.world == ["reserve:a", "charge:b", "refund:b", "release:a"]
    assert done.status == "COMPLETED"
    assert "MarkerRecorded" not in done.events
    assert [u.trigger for u in done.report.unwinds] == ["explicit"]
    assert done.result["status"] == "completed"


async def test_compensate_takes_one_action(harness: Harness) -> None:
    done = await harness.run(ByHand, "compensate_one")
    assert done.world == [
        "reserve:a",
        "charge:b",
        "release:a",
        "charge:c",
        "refund:c",
        "refund:b",
    ]
    assert [e.unwind for e in done.report.entries] == [1, 2, 2]


async def test_f2_compensate_and_then_raise_undoes_each_once(harness: Harness) -> None:
    done = await harness.run(ByHand, "compensate_then_raise")
    assert done.status == "FAILED"
    assert done.world == ["reserve:a", "charge:b", "refund:b", "release:a"]
    assert "MarkerRecorded" not in done.events


async def test_the_run_goes_on_after_compensate(harness: Harness) -> None:
    done = await harness.run(ByHand, "compensate_then_go_on")
    assert done.result == "done"
    assert done.world == ["charge:first try", "refund:first try", "charge:second try"]


@pytest.fixture
def _broken() -> Iterator[None]:
    WORLD.broken.add("broken")
    yield
    WORLD.broken.discard("broken")


@pytest.mark.usefixtures("_broken")
async def test_compensate_raises_what_it_could_not_undo(harness: Harness) -> None:
    done = await harness.run(ByHand, "compensate_fails")
    assert done.result == "CompensationFailedError"
    assert done.world[-1] == "refund:before"
    assert done.report.status == "partial"


@pytest.mark.usefixtures("_broken")
async def test_what_compensate_left_behind_is_not_forgotten(harness: Harness) -> None:
    done = await harness.run(ByHand, "compensate_fails_and_ends")
    assert isinstance(done.error, ApplicationError)
    assert done.error.type == "CompensationFailedError"
    assert isinstance(done.error.cause, ApplicationError)
    assert done.error.cause.message == "another error"


async def test_compensate_settles_what_still_runs(harness: Harness) -> None:
    async def let_go(handle: Handle) -> None:
        await until_event(handle, "ActivityTaskCancelRequested")
        WORLD.gate(handle.id).set()

    done = await harness.run(ByHand, "compensate_settles", meanwhile=let_go)
    assert [e for e in done.world if not e.startswith("at:")] == [
        "charge:before",
        "charge:slow",
        "refund:slow",
        "refund:before",
    ]


async def test_compensate_wants_an_activity(harness: Harness) -> None:
    done = await harness.run(ByHand, "not_an_activity")
    assert "not a named activity" in done.result
