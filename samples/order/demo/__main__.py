"""The demo: ``python -m samples.order.demo [--keep]``, or ``make demo``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import shutil
import signal
import sys
from pathlib import Path
from typing import Final

from samples.order.demo import checks, show
from samples.order.demo.processes import DemoError, Server, Workers, isolate
from samples.order.demo.stories import STORIES, Stage, play
from samples.order.world import World

FOLDER: Final = Path(".demo").absolute()
"""Where everything that the demo writes is. It is emptied at every start."""

STORY_SECONDS: Final = 60

INTRODUCTION: Final = """\
An order reserves stock, charges a card and ships. Where it does not get that far, all that it did
is undone, though samples/order/workflow.py has no line that undoes anything: the activities say
what undoes them, and the workflow's history is the record of what was done.\
"""


async def main(keep: bool) -> int:
    """Set the stage, play the stories, look at the world.

    Args:
        keep: Whether server and worker stay up until Ctrl-C.

    Returns:
        The exit status: 0 if the world is clean.
    """
    exit_on_signals()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    server, workers = Server(FOLDER), Workers(FOLDER)
    isolate(server.address, FOLDER)
    try:
        client = await server.start()
        await workers.start()
        stage = Stage(client, server, workers, World.from_env())
        faults = await tell(stage)
        if keep:
            await stay(stage)
    finally:
        try:
            await workers.stop()
        finally:
            await server.stop()
    return 1 if faults else 0


def exit_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the demo by way of its clean-up."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, lambda: task and task.cancel())


async def tell(stage: Stage) -> list[str]:
    """Play all stories and print the verdict.

    Returns:
        What is not as it must be.
    """
    show.say(INTRODUCTION)
    faults = []
    for story in STORIES:
        try:
            async with asyncio.timeout(STORY_SECONDS):
                faults += await play(story, stage)
        except TimeoutError:
            raise DemoError(
                f"no end of this story in {STORY_SECONDS} s; see {stage.workers.log}"
            ) from None
        except DemoError as err:
            faults.append(f"{story.order.id}: {err}")
    effects = stage.world.books.effects_by_key()
    faults += checks.of_keys(effects)
    show.verdict(faults, f"{len(STORIES)} orders, {len(effects)} idempotency keys, one effect each")
    return faults


async def stay(stage: Stage) -> None:
    """Leave server and worker up until Ctrl-C."""
    python = Path(sys.executable)
    with contextlib.suppress(ValueError):
        python = python.relative_to(Path.cwd())
    show.say(f"""
Server, Web UI ({stage.server.ui}) and a worker stay up until Ctrl-C. In another terminal:

    export TEMPORAL_ADDRESS={stage.server.address}
    {python} -m samples.order.starter --order-id 5 --fail card
    {python} -m samples.order.world""")
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def run() -> int:
    """Read the command line and run the demo."""
    parser = argparse.ArgumentParser(prog="python -m samples.order.demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the server up until Ctrl-C")
    keep: bool = parser.parse_args().keep
    try:
        return asyncio.run(main(keep))
    except DemoError as err:
        show.say(f"\nThe demo failed: {err}")
        return 1
    except asyncio.CancelledError:
        return 130
    finally:
        gc.collect()  # so that the SDK's native clients end before the interpreter does


if __name__ == "__main__":
    sys.exit(run())
