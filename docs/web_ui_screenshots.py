"""Takes the pictures of the README that show Temporal's Web UI, during and after an unwind.

    python -m docs.web_ui_screenshots

It starts a development server and the sample's worker, lets the carrier refuse an order while the
warehouse is slow to take goods back, and looks at the run twice. Needs a Chromium on the path
(Debian: ``apt-get install chromium``). Look at what it writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import tempfile
from pathlib import Path

from temporalio.client import WorkflowFailureError

from docs import browser
from samples.order.demo.processes import Server, Workers, isolate
from samples.order.starter import make_order, start_order
from samples.order.world import World

PICTURES = Path(__file__).parent / "img"
SIZE = (1240, 1080)
TIMELINE = (272, 765, 952, 260)
DETAILS = (748, 552, 476, 270)
"""Where in the window what is to be seen is: x, y, width and height in pixels."""

SETTLE_SECONDS = 2
"""What the page still moves about after it shows the text that is waited for."""


async def main() -> None:
    """Play the story and take both pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server, workers = Server(folder), Workers(folder)
        isolate(server.address, folder)
        books = World.from_env().books
        books.delay("release", 60)
        try:
            client = await server.start()
            await workers.start()
            handle = await start_order(client, make_order("17", fail="carrier"))
            while not books.tally("17", "release").effects:
                await asyncio.sleep(0.1)
            run = server.link(handle.id, handle.result_run_id)
            await look(
                f"{run}/timeline", "undo of reserve_stock", "web-ui-during", TIMELINE, folder
            )
            books.delay("release", 0)
            with contextlib.suppress(WorkflowFailureError):
                await handle.result()
            await look(f"{run}/user-metadata", "undone", "web-ui-after", DETAILS, folder)
        finally:
            await workers.stop()
            await server.stop()


async def look(address: str, text: str, name: str, clip: browser.Clip, folder: Path) -> None:
    """Take a picture of a page once it shows a text."""
    await asyncio.to_thread(shoot, address, text, PICTURES / f"{name}.png", clip, folder)


def shoot(address: str, text: str, picture: Path, clip: browser.Clip, folder: Path) -> None:
    """Take a picture in a browser of its own."""
    with browser.page(folder) as page:
        page.open(address, *SIZE)
        page.until(text, settle=SETTLE_SECONDS)
        page.shoot(picture, clip)


if __name__ == "__main__":
    asyncio.run(main())
    gc.collect()  # so that the SDK's native clients end before the interpreter does
