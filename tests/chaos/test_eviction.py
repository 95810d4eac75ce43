"""Eviction from the cache throws a cancellation into everything; nothing may come of it.

The SDK swallows whatever an evicted run still does, so no test on a server can tell whether an
unwind was begun. Here the SDK's own workflow instance is driven by hand and the library is watched.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from temporalio.worker._workflow_instance import _WorkflowLogicFlag

from tests.chaos.eviction_flows import CleansUp, Ends, Inert, InFlight, Parts
from tests.chaos.stage import Seen, Stage
from tests.support.acts import Receipt

LEGACY: frozenset[_WorkflowLogicFlag] = frozenset()
SINGLE_BATCH = frozenset({_WorkflowLogicFlag.PROCESS_WORKFLOW_ACTIVATION_JOBS_AS_SINGLE_BATCH})


@pytest.fixture(params=[LEGACY, SINGLE_BATCH], ids=["legacy-jobs", "single-batch"])
def flags(request: pytest.FixtureRequest) -> frozenset[_WorkflowLogicFlag]:
    found: frozenset[_WorkflowLogicFlag] = request.param
    return found


@dataclass
class Evicted:
    """An eviction: what the library had done before it and after it."""

    before: Seen
    after: Seen
    started: list[str]


async def evict(stage: Stage) -> Evicted:
    """Evict a run and prove that nothing is left of it and nothing went out."""
    before, started = stage.seen(), len(stage.started)
    completion = await stage.evict()
    assert list(completion.successful.commands) == []
    assert not stage.instance._tasks
    return Evicted(before, stage.seen(), stage.started[started:])


async def played(flow: type, argument: str, flags: frozenset[_WorkflowLogicFlag]) -> Stage:
    """Start a run of a flow and complete its first action, or its first two."""
    stage = Stage(flow, argument, flags)
    await stage.start()
    while "charge" in stage.pending.values() and len(stage.run.ledger.open_entries()) < (
        2 if flow is Ends else 1
    ):
        await stage.complete("charge", Receipt("x"))
    return stage


def assert_nothing_began(evicted: Evicted) -> None:
    assert evicted.after == evicted.before
    assert evicted.started == []


async def test_evicted_before_its_first_task(flags: frozenset[_WorkflowLogicFlag]) -> None:
    assert_nothing_began(await evict(Stage(InFlight, "direct", flags)))


async def test_evicted_without_named_calls(flags: frozenset[_WorkflowLogicFlag]) -> None:
    assert_nothing_began(await evict(await played(Inert, "", flags)))


SHAPES = [
    "direct",
    "gathered",
    "grouped",
    "shielded",
    "limited",
    "in_background",
    "undoing",
    "in_a_unit",
    "joined",
    "resting",
]


@pytest.mark.parametrize("shape", SHAPES)
async def test_evicted_while_a_named_call_is_in_flight(
    shape: str, flags: frozenset[_WorkflowLogicFlag]
) -> None:
    stage = await played(InFlight, shape, flags)
    if shape == "undoing":
        await stage.complete("charge", Receipt("slow"))
        assert "refund" in stage.pending.values()
    evicted = await evict(stage)
    assert evicted.before.ending is None
    assert_nothing_began(evicted)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s not in ("resting", "in_background")])
async def test_evicted_while_a_cancelled_call_settles(
    shape: str, flags: frozenset[_WorkflowLogicFlag]
) -> None:
    """The cancel has been sent to the server; the unwind has not begun, and does not now."""
    stage = await played(InFlight, shape, flags)
    await stage.cancel()
    if shape != "shielded":
        assert stage.cancels
        assert stage.seen().ending is None
    assert_nothing_began(await evict(stage))


@pytest.mark.parametrize(
    "shape",
    [
        "except_exception",
        "except_base_exception",
        "except_cancelled",
        "lastly",
        "lastly_compensates",
        "swallows",
        "lastly_in_a_task",
        "continues",
    ],
)
async def test_evicted_into_code_that_undoes_by_hand(
    shape: str, flags: frozenset[_WorkflowLogicFlag]
) -> None:
    """The user's handler does run; what it calls comes to nothing, and no unwind begins."""
    evicted = await evict(await played(CleansUp, shape, flags))
    assert evicted.after == evicted.before


@pytest.mark.parametrize("how", ["fails", "settles", "uncommitted", "cancelled", "signal"])
async def test_evicted_while_an_unwind_is_at_work(
    how: str, flags: frozenset[_WorkflowLogicFlag]
) -> None:
    stage = await played(Ends, how, flags)
    if how in ("fails", "settles"):
        await stage.fail("explode")
    elif how == "uncommitted":
        await stage.complete("reserve", Receipt("third"))
    elif how == "cancelled":
        await stage.cancel()
    else:
        await stage.signal("breaks")
        await stage.fail("explode")
    evicted = await evict(stage)
    assert evicted.before.ending is not None
    assert evicted.before.unwinds != []
    assert_nothing_began(evicted)


async def test_evicted_while_the_run_waits_for_a_handler_that_ends_it(
    flags: frozenset[_WorkflowLogicFlag],
) -> None:
    """A signal handler unwinds; a cancel has made the run method wait for it."""
    stage = await played(Ends, "", flags)
    await stage.signal("breaks")
    await stage.fail("explode")
    await stage.cancel()
    await stage.complete("refund")
    evicted = await evict(stage)
    assert evicted.before.unwinds == [["undone", None]]
    assert_nothing_began(evicted)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_evicted_while_compensate_is_at_work(
    cancelled: bool, flags: frozenset[_WorkflowLogicFlag]
) -> None:
    stage = await played(Ends, "compensates", flags)
    if cancelled:
        await stage.cancel()
    await stage.complete("refund")
    evicted = await evict(stage)
    assert evicted.before.unwinds == [["undone", None]]
    assert evicted.before.ending is None
    assert_nothing_began(evicted)


@pytest.mark.parametrize("shape", ["in_a_unit", "joined", "update"])
async def test_evicted_while_a_part_of_the_run_is_undone(
    shape: str, flags: frozenset[_WorkflowLogicFlag]
) -> None:
    stage = await played(Parts, "resting" if shape == "update" else shape, flags)
    if shape == "update":
        await stage.update("change")
    await stage.complete("charge", Receipt("inside"))
    await stage.fail("explode")
    evicted = await evict(stage)
    assert evicted.before.unwinds == [[None]]
    assert evicted.before.ending is None
    assert_nothing_began(evicted)


async def test_evicted_while_compensate_waits_for_a_call(
    flags: frozenset[_WorkflowLogicFlag],
) -> None:
    """Who called it is not told of a cancel that nobody requested."""
    stage = await played(CleansUp, "compensates", flags)
    assert stage.cancels
    assert_nothing_began(await evict(stage))
    assert not stage.instance._object.took_it_for_a_cancel


async def test_evicted_while_a_second_cancel_waits_for_the_unwind(
    flags: frozenset[_WorkflowLogicFlag],
) -> None:
    stage = await played(Ends, "fails", flags)
    await stage.fail("explode")
    await stage.cancel()
    evicted = await evict(stage)
    assert evicted.before.unwinds == [[None, None]]
    assert_nothing_began(evicted)


async def test_evicted_while_continuing_as_new_waits_for_a_call(
    flags: frozenset[_WorkflowLogicFlag],
) -> None:
    stage = await played(Ends, "continues", flags)
    assert stage.cancels
    evicted = await evict(stage)
    assert evicted.before.entries[-1][1] == "running"
    assert_nothing_began(evicted)


async def test_evicted_while_handlers_act(flags: frozenset[_WorkflowLogicFlag]) -> None:
    stage = await played(Ends, "", flags)
    await stage.signal("acts")
    await stage.update("updates")
    evicted = await evict(stage)
    assert evicted.after == evicted.before
    assert evicted.started in ([], ["refund"])
