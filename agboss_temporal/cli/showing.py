"""Writing a view to standard output."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agboss_temporal.core.run_ledger import RunLedger
    from agboss_temporal.views.document import Document

FORMATS: Final = ("text", "json", "mermaid", "svg", "html")

_NARROWEST: Final = 60
_WIDEST: Final = 160
_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"


def options(parser: ArgumentParser, formats: tuple[str, ...] = FORMATS) -> None:
    """Add the options that say how things are shown."""
    parser.add_argument(
        "--format", choices=formats, default="text", help="of what is shown (default: text)"
    )
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set",
    )


def drawn(ledger: RunLedger, arguments: Namespace) -> str:
    """Draw a run as the user asked."""
    from agboss_temporal.views import html_page, json_text, mermaid, svg, text

    views = {
        "json": json_text.draw,
        "mermaid": mermaid.draw,
        "svg": svg.draw,
        "html": html_page.draw,
    }
    view = views.get(arguments.format)
    if view is not None:
        return view(ledger)
    return text.draw(ledger, width=width(), colour=coloured(arguments))


def told(document: Document, value: Any, arguments: Namespace) -> str:
    """Write a document as text, or what it describes as JSON."""
    if arguments.format != "json":
        return text_of(document, coloured=coloured(arguments))
    import json

    return json.dumps(_plain(value), indent=2).replace("\x7f", "\\u007f") + "\n"


def _plain(value: Any) -> Any:
    """Turn records into JSON values."""
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        told = {name: _plain(getattr(value, name)) for name in fields}
        return {"status": value.status, **told} if hasattr(value, "status") else told
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def aside(document: Document) -> None:
    """Show a document on standard error, before a question that is about it."""
    sys.stderr.write(text_of(document, coloured=False))
    sys.stderr.flush()


def text_of(document: Document, *, coloured: bool) -> str:
    """Write a document as text."""
    from agboss_temporal.views import text

    return text.write(document, width=width(), colour=coloured)


def width() -> int:
    """Tell how many columns a text may take."""
    if not sys.stdout.isatty():
        return 100
    return min(max(shutil.get_terminal_size((100, 24)).columns, _NARROWEST), _WIDEST)


def coloured(arguments: Namespace) -> bool:
    """Tell whether to add colours."""
    if arguments.color != "auto":
        return bool(arguments.color == "always")
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def write(text: str) -> None:
    """Write a text to standard output."""
    sys.stdout.write(text)
    sys.stdout.flush()


def rewrite(text: str) -> None:
    """Write a text to standard output, in place of what was there if it is a terminal."""
    write((_CLEAR if sys.stdout.isatty() else "") + text)
