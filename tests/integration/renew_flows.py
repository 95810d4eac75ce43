"""Workflows that continue as new at awkward moments."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agboss_temporal import CompensatedWorkflow, JoinFailedError, action, join, unit
from tests.support.acts import WORLD, Receipt, refund
from tests.support.calls import ONCE, charge, explode, note, reserve


@action(compensate_with=refund)
@activity.defn
async def pulse(item: str) -> Receipt:
    """Heartbeat until cancelled; do nothing before that."""
    WORLD.did(f"at:{item}")
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.1)


@dataclass
class Label:
    text: str
    weight: int


async def pulses(item: str) -> None:
    await workflow.execute_activity(pulse, item, heartbeat_timeout=timedelta(seconds=5), **ONCE)


@workflow.defn
class Renewed(CompensatedWorkflow):
    """Is told by signals to continue as new; a second generation undoes all."""

    def __init__(self) -> None:
        self.go = False
        self.broken = False

    @workflow.run
    async def run(self, how: str = "wait", generation: int = 0) -> str:
        if generation:
            if how == "hold":
                await workflow.wait_condition(lambda: self.go)
            await explode()
        await charge("main")
        gate = workflow.info().workflow_id
        match how:
            case "loop":
                await charge("one", gate)
                await charge("two")
            case "parked":
                task = asyncio.create_task(charge("one", gate))
                await workflow.wait_condition(lambda: False)
                await task
            case "breaks":
                task = asyncio.create_task(charge("one", gate))
                await workflow.wait_condition(lambda: self.broken)
                raise ApplicationError("broken", type="Broken")
            case "leaving":
                task = asyncio.create_task(charge("one", gate))
                await asyncio.sleep(0.5)
                workflow.continue_as_new(args=["x", 1])
            case _ if how.startswith("alternative"):
                try:
                    async with unit("part"):
                        await charge(how)
                        raise ApplicationError("no", type="No")
                except ApplicationError:
                    await charge("instead")
            case "pulse":
                await pulses(gate)
            case "suggested":
                await charge("one", gate)
                if self.go:
                    workflow.continue_as_new(args=["x", 1])
            case "returns":
                await charge("one", gate)
                return "returned"
            case "unit":
                async with unit("part"):
                    await charge("in unit")
                    workflow.continue_as_new(args=["x", 1])
            case "sealed":
                async with unit("part", seal=True):
                    await charge("in unit")
                    workflow.continue_as_new(args=["x", 1])
            case "except":
                try:
                    await explode()
                except ActivityError:
                    await charge("in except")
                    workflow.continue_as_new(args=["x", 1])
            case "join-except":
                try:
                    await join(charge("b1"), explode())
                except JoinFailedError:
                    workflow.continue_as_new(args=["x", 1])
            case "finally":
                try:
                    await charge("in try")
                finally:
                    workflow.continue_as_new(args=["x", 1])
            case "hold":
                workflow.continue_as_new(args=["hold", 1])
        await workflow.wait_condition(lambda: False)
        return "never"

    @workflow.signal
    async def renew(self) -> None:
        self.go = True
        workflow.continue_as_new(args=["x", 1])

    @workflow.signal
    async def act(self, item: str) -> None:
        await charge(item)

    @workflow.signal
    def break_it(self) -> None:
        self.broken = True

    @workflow.signal
    def proceed(self) -> None:
        self.go = True

    @workflow.update
    async def hold(self, item: str) -> str:
        await charge(item)
        await reserve(f"{item}-committed")
        await workflow.wait_condition(lambda: False)
        return item


@workflow.defn
class Memos(CompensatedWorkflow):
    """Continues with different forms of memo, and reports what it finds."""

    @workflow.run
    async def run(self, how: str, generation: int = 0) -> list[Any]:
        if generation == 3:
            label = workflow.memo_value("label", type_hint=Label, default=Label("none", 0))
            found = [label.text, label.weight, sorted(workflow.memo())]
            attributes = workflow.info().typed_search_attributes
            found.append(sorted(pair.key.name for pair in attributes))
            await note(f"found:{found}")
            raise ApplicationError("end", type="End")
        await charge(f"g{generation}")
        options: dict[str, Any] = {}
        if generation == 0:
            match how:
                case "empty":
                    options["memo"] = {}
                case "new":
                    options["memo"] = {"label": Label("new", 2)}
                case "upsert":
                    workflow.upsert_memo({"label": Label("upserted", 3)})
        workflow.continue_as_new(args=[how, generation + 1], **options)


@workflow.defn
class Plain:
    """The same without the library."""

    @workflow.run
    async def run(self, how: str, generation: int = 0) -> list[Any]:
        if generation == 1:
            return [workflow.memo_value("label", type_hint=Label, default=Label("none", 0)).text]
        options: dict[str, Any] = {"memo": {}} if how == "empty" else {}
        workflow.continue_as_new(args=[how, generation + 1], **options)
