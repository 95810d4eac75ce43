"""The five stories: what each orders, what is done to it meanwhile, and how it must end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from temporalio.client import Client

from agboss_temporal import CompensationReport
from samples.order.demo import checks, show
from samples.order.demo.processes import DemoError, Server, Workers, run_cli
from samples.order.demo.trail import CANCEL, ORDER, Trail
from samples.order.models import Order
from samples.order.starter import make_order, start_order
from samples.order.world import World

_LONG: Final = 60.0
"""Seconds that an answer takes which is not to arrive by itself."""


@dataclass(frozen=True)
class Stage:
    """What a story is played on."""

    client: Client
    server: Server
    workers: Workers
    world: World


class Play:
    """One story while it is played."""

    def __init__(self, stage: Stage, order: Order, trail: Trail) -> None:
        self.stage = stage
        self.order = order
        self._trail = trail
        self.ending = ""

    async def follow(self, until: str = ORDER) -> None:
        """Tell the run's steps, up to the one with this name."""
        async for step in self._trail:
            show.step(step)
            if step.name == ORDER:
                self.ending = step.outcome
            if step.name.startswith(until):
                return
        raise DemoError(f"the run is over, but there was no {until!r} in it")

    async def reached(self, kind: str) -> None:
        """Wait until a request has had its effect in the world."""
        while not self.stage.world.books.tally(self.order.id, kind).effects:
            if (await self._trail.handle.describe()).close_time is not None:
                raise DemoError(f"the run is over, but {kind} had no effect in it")
            await asyncio.sleep(0.02)

    async def cancel(self) -> None:
        """Cancel the order."""
        await self._trail.handle.cancel()

    async def terminate(self) -> None:
        """Terminate the order: no more of its code runs."""
        await self._trail.handle.terminate(reason="an operator has had enough")

    async def command(self, *arguments: str, code: int) -> None:
        """Run a command about the order; its exit code must be this one."""
        line = [arguments[0], self._trail.handle.id, *arguments[1:]]
        found, said = await run_cli(*line)
        show.command(" ".join(["agboss-temporal", *line]), said, found)
        if found != code:
            raise DemoError(f"{arguments[0]} ended with {found}, not {code}")

    async def report(self) -> CompensationReport:
        """Ask the workflow what compensation has done in it."""
        found: CompensationReport = await self._trail.handle.query(
            "agboss.compensation", result_type=CompensationReport
        )
        return found


Plot = Callable[[Play], Awaitable[None]]


async def just_run(play: Play) -> None:
    """Let the order run."""
    await play.follow()


async def cancel_while_charging(play: Play) -> None:
    """Cancel when the bank has taken the money and the worker does not know it yet."""
    await play.follow(until="reserve_stock")
    await play.reached("charge")
    show.aside("the bank has the money, its answer is on the way, and the customer cancels")
    await play.cancel()
    await play.follow(until=CANCEL)
    play.stage.world.books.delay("charge", 0)
    await play.follow()


async def kill_while_undoing(play: Play) -> None:
    """Kill the worker when the goods are back on the shelf and it does not know it yet."""
    await play.follow(until="undo of charge_card")
    await play.reached("release")
    workers = play.stage.workers
    show.aside(f"the goods are back, the answer is on the way: kill -9 {workers.pid}")
    await workers.kill()
    play.stage.world.books.delay("release", 0)
    await workers.start()
    show.aside(f"Temporal will miss it in some seconds; a second worker is there: {workers.pid}")
    await play.follow()
    show_releases(play)


async def terminate_and_recover(play: Play) -> None:
    """Terminate the run when the goods are back on the shelf and it does not know it yet."""
    await play.follow(until="undo of charge_card")
    await play.reached("release")
    show.aside("the goods are back, the answer is on the way, and an operator terminates the run")
    await play.terminate()
    await play.follow()
    play.stage.world.books.delay("release", 0)
    await play.command("status", code=1)
    await play.command("recover", "--yes", code=0)
    await play.command("status", code=0)
    show.say()
    show_releases(play)


def show_releases(play: Play) -> None:
    """Say how often the warehouse was asked to release, and how often it did."""
    tally = play.stage.world.books.tally(play.order.id, "release")
    show.aside(
        f"to the warehouse: {tally.requests} requests to release, {tally.keys} idempotency key, "
        f"{tally.effects} release"
    )


@dataclass(frozen=True)
class Story:
    """A story.

    Attributes:
        title: What it shows.
        order: The order that it is about.
        ending: The status that the run must close with.
        plot: What happens to it.
        slow: The kind of request whose answer does not arrive by itself.
    """

    title: str
    order: Order
    ending: str
    plot: Plot = just_run
    slow: str | None = None


STORIES: Final = (
    Story("1. A good order", make_order("good"), "COMPLETED"),
    Story("2. The carrier refuses", make_order("refused", fail="carrier"), "FAILED"),
    Story(
        "3. The customer cancels while the card is being charged",
        make_order("cancelled"),
        "CANCELED",
        cancel_while_charging,
        slow="charge",
    ),
    Story(
        "4. The carrier refuses, and the worker is killed in the middle of the unwind",
        make_order("killed", fail="carrier"),
        "FAILED",
        kill_while_undoing,
        slow="release",
    ),
    Story(
        "5. The carrier refuses, and the run is terminated in the middle of the unwind",
        make_order("terminated", fail="carrier"),
        "TERMINATED",
        terminate_and_recover,
        slow="release",
    ),
)


async def play(story: Story, stage: Stage) -> list[str]:
    """Play a story and print it.

    Returns:
        What is not as it must be.
    """
    show.title(story.title)
    books = stage.world.books
    before = books.snapshot()
    if story.slow:
        books.delay(story.slow, _LONG)
    handle = await start_order(stage.client, story.order)
    current = Play(stage, story.order, Trail(handle))
    await story.plot(current)
    report = await current.report()
    if report.entries and story.ending != "TERMINATED":  # Nothing of it runs that could tell more.
        show.report(report)
    after = books.snapshot()
    show.worlds(story.order.sku, before, after)
    show.say()
    show.say(f"    {stage.server.link(handle.id, handle.result_run_id)}")
    wanted = checks.sold(before, story.order) if story.ending == "COMPLETED" else before
    faults = checks.of_run(current.ending, story.ending, report) + checks.of_world(after, wanted)
    return [f"{story.order.id}: {fault}" for fault in faults]
