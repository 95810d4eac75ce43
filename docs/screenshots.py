"""Takes the pictures of the README: a recorded run as a page, in light and in dark.

    python -m docs.screenshots [HISTORY]

Needs a Chromium on the path (Debian: ``apt-get install chromium``). Look at what it writes.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from agboss_temporal import history
from agboss_temporal.views import html_page
from docs.browser import FLAGS, find_browser

HERE = Path(__file__).parent
RUN = HERE.parent / "tests" / "replay" / "histories" / "undo-fails.json"
SIZE = (860, 540)
SCHEMES = {"dark": 0, "light": 1}
"""Chromium's numbers for the colour scheme that a user prefers."""


def main() -> None:
    """Take all pictures."""
    run = Path(sys.argv[1]) if len(sys.argv) > 1 else RUN
    ledger = asyncio.run(history.ledger(history.load(run)))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "run.html")
        page.write_text(html_page.draw(ledger))
        for scheme in SCHEMES:
            shoot(page, HERE / "img" / f"status-{scheme}.png", scheme, folder)


def shoot(page: Path, picture: Path, scheme: str, folder: str) -> None:
    """Take one picture."""
    picture.parent.mkdir(exist_ok=True)
    subprocess.run(
        [
            find_browser(),
            *FLAGS,
            f"--user-data-dir={folder}/profile",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--screenshot={picture}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )


if __name__ == "__main__":
    main()
