"""A headless Chromium, told what to do over its DevTools pipe; the standard library suffices."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-lcd-text",
)
PATIENCE_SECONDS = 60

Clip = tuple[int, int, int, int]


def find_browser() -> str:
    """Find a Chromium."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is on the path")
    return found


class Page:
    """A page that is shown."""

    def __init__(self, into: int, out: int) -> None:
        self._into = into
        self._out = os.fdopen(out, "rb")
        self._numbers = itertools.count(1)
        self._session: str | None = None

    def open(self, address: str, width: int, height: int) -> None:
        """Open an address in a window of this size."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """Run JavaScript in the page and return what it yields."""
        return self.call("Runtime.evaluate", expression=script)["result"].get("value")

    def until(self, text: str, *, settle: float) -> None:
        """Wait until the page shows a text, and so many seconds more."""
        latest = time.monotonic() + PATIENCE_SECONDS
        while text not in str(self.evaluate("document.body ? document.body.textContent : ''")):
            if time.monotonic() > latest:
                raise TimeoutError(f"the page does not show {text!r}")
            time.sleep(0.2)
        time.sleep(settle)

    def shoot(self, picture: Path, clip: Clip) -> None:
        """Write a part of the page as PNG: x, y, width and height in pixels."""
        area = dict(zip(("x", "y", "width", "height"), clip, strict=True))
        shot = self.call("Page.captureScreenshot", clip={**area, "scale": 1})
        picture.parent.mkdir(exist_ok=True)
        picture.write_bytes(base64.b64decode(shot["data"]))

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the DevTools protocol."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
        raise RuntimeError("the browser is gone")

    def _messages(self) -> Iterator[dict[str, Any]]:
        text = bytearray()
        while byte := self._out.read(1):
            if byte == b"\0":
                yield json.loads(text)
                text.clear()
            else:
                text += byte


def _above_ten(number: int) -> int:
    """Move a file descriptor out of the way of 3 and 4."""
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(number)
    return moved


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """Start a browser and give its page; its profile is in the folder."""
    to_browser, into = map(_above_ten, os.pipe())
    out, from_browser = map(_above_ten, os.pipe())
    command = [find_browser(), *FLAGS, "--remote-debugging-pipe"]
    command.append(f"--user-data-dir={folder / 'profile'}")
    # The browser takes its orders from 3 and answers on 4.
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command],
        pass_fds=(to_browser, from_browser),
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(into, out)
    finally:
        process.terminate()
        process.wait()
        os.close(into)
