"""The workflow that runs any program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

import agboss_temporal
from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPolicy,
    LimitExceededError,
    action,
    compensate,
)
from tests.model import acts
from tests.model.acts import ACTIONS, COMMITTERS, OPTIONS, Receipt, Spec
from tests.model.program import (
    Act,
    Child,
    Commit,
    Compensate,
    Fan,
    Hang,
    If,
    Limit,
    Loop,
    Node,
    Note,
    Program,
    Raise,
    Revert,
    Try,
    Unit,
    dump,
    load,
)
from tests.model.stage import stage_of

ONCE: dict[str, Any] = {"retry_policy": RetryPolicy(maximum_attempts=1)}
LONG = timedelta(minutes=10)


class Machine(CompensatedWorkflow):
    """Runs a program, and its handlers."""

    # Before the run method: a handler may be called first.
    @workflow.init
    def __init__(self, given: Any, place: str = "", generation: int = 0, undo: str = "ok") -> None:
        self.given, self.generation, self.undo = given, generation, undo
        self.program: Program = load(given)
        self.place = place
        self.prefix = place + (f"g{generation}" if generation else "")
        self.values: list[Receipt] = []
        self.limits: list[asyncio.Timeout] = []
        self.handled = 0

    async def execute(self) -> Receipt:
        bodies = (self.program.main, *self.program.further)
        await self.body(bodies[self.generation], self.prefix + "m")
        if self.generation < len(self.program.further):
            workflow.continue_as_new(args=[self.given, self.place, self.generation + 1])
        return Receipt(self.place.rstrip("/"), self.undo)

    async def handle(self, which: int) -> str:
        bodies = self.program.handlers
        place = f"{self.prefix}h{self.handled}"
        self.handled += 1
        if bodies:
            await self.body(bodies[which % len(bodies)], place)
        return place

    async def body(self, nodes: Sequence[Node], place: str) -> None:
        for index, node in enumerate(nodes):
            await getattr(self, f"do_{type(node).__name__.lower()}")(node, f"{place}.{index}")

    # -- calls

    async def call(self, activity: Any, spec: Spec) -> Receipt:
        options = {"start_to_close_timeout": LONG, **ONCE}
        if spec.outcome.startswith("lost"):
            options["start_to_close_timeout"] = acts.LOST_AFTER
        if spec.outcome == "unstarted":
            options["task_queue"] = "nobody-polls-this"
            options["schedule_to_start_timeout"] = acts.LOST_AFTER / 2
        found: Receipt = await workflow.execute_activity(
            activity, spec, result_type=Receipt, **options
        )
        return found

    async def do_act(self, node: Act, place: str) -> None:
        spec = Spec(place, node.outcome, node.on_cancel, node.undo)
        value = await self.call(ACTIONS[node.kind], spec)
        if node.touch:
            value.touched = True
        if node.kind in ("result", "ship"):
            self.values.append(value)

    async def do_commit(self, node: Commit, place: str) -> None:
        await self.call(COMMITTERS[node.name], Spec(place, node.outcome, node.on_cancel))

    async def do_note(self, node: Note, place: str) -> None:
        await self.call(acts.note, Spec(place))

    async def do_revert(self, node: Revert, place: str) -> None:
        if self.values:
            value = self.values[-1 - node.back % len(self.values)]
            await workflow.execute_activity(
                acts.undo_result, value, start_to_close_timeout=LONG, **ONCE
            )

    async def do_child(self, node: Child, place: str) -> None:
        value = await workflow.execute_child_workflow(
            DeclaredChild.run if node.declared else PlainChild.run,
            args=[dump(Program(node.body)), f"{place}/", 0, node.undo],
            id=f"{workflow.info().workflow_id.partition('/')[0]}/{place}",
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        if node.declared:
            self.values.append(value)

    # -- the code around them

    async def do_raise(self, node: Raise, place: str) -> None:
        if node.error == "Limit":
            raise LimitExceededError("as the program says")
        raise ApplicationError("as the program says", type=node.error, non_retryable=True)

    async def do_hang(self, node: Hang, place: str) -> None:
        await workflow.wait_condition(lambda: False)

    async def do_compensate(self, node: Compensate, place: str) -> None:
        await (compensate() if node.kind is None else compensate(ACTIONS[node.kind]))

    async def do_try(self, node: Try, place: str) -> None:
        try:
            await self.body(node.body, place)
        except Exception:
            pass
        else:
            return
        await self.body(node.handler, f"{place}x")

    async def do_if(self, node: If, place: str) -> None:
        await self.body(node.other if len(self.values) % 2 else node.then, place)

    async def do_loop(self, node: Loop, place: str) -> None:
        for turn in range(node.times):
            await self.body(node.body, f"{place}@{turn}")

    async def do_fan(self, node: Fan, place: str) -> None:
        branches = [
            self.body(branch, f"{place}{chr(ord('a') + index)}")
            for index, branch in enumerate(node.branches)
        ]
        if node.how == "gather":
            await asyncio.gather(*branches)
        elif node.how == "group":
            async with asyncio.TaskGroup() as group:
                for branch in branches:
                    group.create_task(branch)
        else:
            await agboss_temporal.join(*branches)

    async def do_unit(self, node: Unit, place: str) -> None:
        async with agboss_temporal.unit(seal=node.seal):
            await self.body(node.body, place)

    async def do_limit(self, node: Limit, place: str) -> None:
        async with asyncio.timeout(None) as limit:
            self.limits.append(limit)
            try:
                await self.body(node.body, place)
            finally:
                self.limits.remove(limit)

    # -- what arrives from outside

    @workflow.signal
    def expire(self, which: int) -> None:
        limit = self.limits[which % len(self.limits)] if self.limits else None
        if limit is not None and not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())

    @workflow.signal
    def hold(self) -> None:
        """Keep the workflow task open until the driver has put two events into the next."""
        if not workflow.unsafe.is_replaying():
            stage = stage_of(workflow.info().workflow_id)
            stage.holding.set()
            stage.release.wait(8)

    @workflow.signal
    async def poke(self, which: int) -> None:
        await self.handle(which)

    @workflow.update
    async def ask(self, which: int) -> str:
        return await self.handle(which)


@workflow.defn
class Default(Machine):
    """With the plugin's policy."""

    @workflow.run
    async def run(
        self, given: Any, place: str = "", generation: int = 0, undo: str = "ok"
    ) -> Receipt:
        return await self.execute()


@workflow.defn
class Allow(Machine):
    """May return with uncommitted actions."""

    compensation = CompensationPolicy(uncommitted="allow")

    @workflow.run
    async def run(
        self, given: Any, place: str = "", generation: int = 0, undo: str = "ok"
    ) -> Receipt:
        return await self.execute()


@workflow.defn
class Stop(Machine):
    """Stops unwinding after an undo that gave up."""

    compensation = CompensationPolicy(on_exhausted="stop")

    @workflow.run
    async def run(
        self, given: Any, place: str = "", generation: int = 0, undo: str = "ok"
    ) -> Receipt:
        return await self.execute()


@workflow.defn
class Failures(Machine):
    """Is unwound only after failures."""

    compensation = CompensationPolicy(triggers=frozenset({"node-failure"}))

    @workflow.run
    async def run(
        self, given: Any, place: str = "", generation: int = 0, undo: str = "ok"
    ) -> Receipt:
        return await self.execute()


@workflow.defn
class PlainChild(Machine):
    """A child that is its own unit of work."""

    @workflow.run
    async def run(
        self, given: Any, place: str = "", generation: int = 0, undo: str = "ok"
    ) -> Receipt:
        return await self.execute()


@action(compensate_with=acts.undo_result, **OPTIONS)
@workflow.defn
class DeclaredChild(Machine):
    """A child that its parent can undo."""

    @workflow.run
    async def run(
        self, given: Any, place: str = "", generation: int = 0, undo: str = "ok"
    ) -> Receipt:
        return await self.execute()


ROOTS: dict[str, type[Any]] = {
    "default": Default,
    "allow": Allow,
    "stop": Stop,
    "failures": Failures,
}
WORKFLOWS: list[type] = [*ROOTS.values(), PlainChild, DeclaredChild]
