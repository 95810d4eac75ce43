"""Names that anybody may have chosen, made fit to be shown: nothing in them acts on the reader.

Names of activities and types of errors come from a history. In a terminal a control character
could move the cursor, in markup it could end the document, and a bidirectional override could show
one name as another.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

NAME_LIMIT: Final = 200
"""How much of a name is shown, in characters."""

_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})
"""Categories of characters that are shown as escapes: controls, formats, halves of pairs, what is
not assigned, and line ends."""

_MARKS: Final = frozenset({"Mn", "Me"})

_MOST_MARKS: Final = 4
"""How many marks a character may carry; a heap of them would cover the lines around it."""

_PLAIN: Final = re.compile(r"[ -~]*")

_BREAKS: Final = "_-./:,;|\\)]}"


def visible(text: str, limit: int = NAME_LIMIT) -> str:
    """Write a text so that it can be shown: on one line, acting on nothing, not too long."""
    short = shorten(text, limit)
    if _PLAIN.fullmatch(short):
        return short
    shown: list[str] = []
    marks = 0
    for character in short:
        marks = marks + 1 if unicodedata.category(character) in _MARKS else 0
        shown.append(_escape(character) if marks > _MOST_MARKS else _shown(character))
    return "".join(shown)


def shorten(text: str, limit: int) -> str:
    """Leave out the middle of what is longer than a limit, in characters."""
    if len(text) <= limit:
        return text
    head = max((limit - 1) * 2 // 3, 1)
    tail = max(limit - 1 - head, 0)
    return f"{text[:head]}…{text[len(text) - tail :]}"


def columns_of(text: str) -> int:
    """Count the columns that a text takes in a terminal."""
    if _PLAIN.fullmatch(text):
        return len(text)
    return sum(_width(character) for character in text)


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of at most so many columns, where a name may be broken."""
    lines: list[str] = []
    rest = text
    while columns_of(rest) > width:
        cut = _cut(rest, width)
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*lines, rest] if rest or not lines else lines


def pad(text: str, width: int) -> str:
    """Fill a text up to so many columns."""
    return text + " " * max(width - columns_of(text), 0)


def _cut(text: str, width: int) -> int:
    """Find how many characters of a text that is too wide stand on its first line."""
    taken = fits = 0
    while taken + _width(text[fits]) <= width:
        taken += _width(text[fits])
        fits += 1
    fits = max(fits, 1)
    lowest = fits * 2 // 3
    space = text.rfind(" ", lowest, fits + 1)
    if space > 0:
        return space
    for at in range(fits, max(lowest, 1), -1):
        if text[at - 1] in _BREAKS or (text[at - 1].islower() and text[at].isupper()):
            return at
    return fits


def _shown(character: str) -> str:
    return _escape(character) if unicodedata.category(character) in _ACTING else character


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _width(character: str) -> int:
    if unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
