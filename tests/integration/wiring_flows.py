"""Workflows for the wiring of workers: plain ones, and ones whose plugin comes late."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from agboss_temporal import CompensatedWorkflow
from tests.support.acts import Receipt
from tests.support.calls import ONCE, charge, explode, note, reserve, ship


@workflow.defn
class Unnamed:
    """Uses a good part of the SDK and calls nothing that a contract names."""

    @workflow.run
    async def run(self) -> list[str]:
        self.seen: list[str] = []
        first = await note("one")
        both = [await note("two"), await asyncio.create_task(note("three"))]
        await asyncio.sleep(0.01)
        await workflow.execute_local_activity(
            "note", "local", start_to_close_timeout=timedelta(seconds=5)
        )
        workflow.patched("users-own")
        kid = await workflow.execute_child_workflow(
            UnnamedKid.run, id=workflow.info().workflow_id + "-kid"
        )
        try:
            await explode()
        except ActivityError:
            self.seen.append("caught")
        workflow.upsert_memo({"a": 1})
        await workflow.wait_condition(lambda: bool(self.seen), timeout=5)
        return [first, *both, kid, *self.seen]


@workflow.defn
class UnnamedKid:
    @workflow.run
    async def run(self) -> str:
        return await note("kid")


async def named_calls(how: str) -> str:
    await reserve("a")
    await charge("b")
    await note("in between")
    await charge("c")
    await charge("d")
    if how == "fail":
        await explode()
    await ship("a")
    return "done"


@workflow.defn(name="Named")
class PlainNamed:
    @workflow.run
    async def run(self, how: str) -> str:
        return await named_calls(how)


@workflow.defn(name="Named")
class RecordedNamed(CompensatedWorkflow):
    @workflow.run
    async def run(self, how: str) -> str:
        return await named_calls(how)


@workflow.defn(name="Waits")
class PlainWaits:
    """Acts, waits for a signal, acts again and fails."""

    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self) -> None:
        await charge("before")
        await workflow.wait_condition(lambda: self.go)
        await charge("after")
        await explode()

    @workflow.signal
    def proceed(self) -> None:
        self.go = True


@workflow.defn(name="Waits")
class RecordedWaits(CompensatedWorkflow):
    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self) -> None:
        await charge("before")
        await workflow.wait_condition(lambda: self.go)
        await charge("after")
        await explode()

    @workflow.signal
    def proceed(self) -> None:
        self.go = True


@workflow.defn(name="Renews")
class PlainRenews:
    """Continues as new while an action runs."""

    @workflow.run
    async def run(self, generation: int = 0) -> str:
        if generation:
            return "second"
        await charge("a")
        gate = workflow.info().workflow_id
        self.handle = workflow.start_activity("charge", args=["b", gate], **ONCE)
        await note("x")
        workflow.continue_as_new(1)


@workflow.defn(name="Renews")
class RecordedRenews(CompensatedWorkflow):
    @workflow.run
    async def run(self, generation: int = 0) -> str:
        if generation:
            return "second"
        await charge("a")
        gate = workflow.info().workflow_id
        self.handle = workflow.start_activity("charge", args=["b", gate], **ONCE)
        await note("x")
        workflow.continue_as_new(1)


@workflow.defn
class CallsLate(CompensatedWorkflow):
    """Calls an activity that is declared only while the run is open."""

    def __init__(self) -> None:
        self.go = False

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity("late_action", "one", result_type=Receipt, **ONCE)
        await charge("x")
        await workflow.wait_condition(lambda: self.go)
        await workflow.execute_activity("late_action", "two", result_type=Receipt, **ONCE)
        await explode()

    @workflow.signal
    def proceed(self) -> None:
        self.go = True


@workflow.defn
class RaisesPlainly(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await charge("a")
        raise ValueError("a domain error")


@workflow.defn
class OptedOutChild(CompensatedWorkflow):
    compensation = None

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


@workflow.defn
class ParentOfOptedOut:
    @workflow.run
    async def run(self) -> None:
        await workflow.start_child_workflow(
            OptedOutChild.run, id=workflow.info().workflow_id + "-child"
        )
        await workflow.wait_condition(lambda: False)


@workflow.defn
class CallsLocally(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> Any:
        return await workflow.execute_local_activity(
            "charge", args=["local", None], start_to_close_timeout=timedelta(seconds=5)
        )
