"""The colours of the drawn views, in light and in dark.

Hues of the Okabe-Ito palette, which people with any colour vision tell apart, darkened or
lightened until text in them has a contrast of at least 4.5 to 1. A symbol, a word and the line of
the border say the same without a colour.
"""

from __future__ import annotations

from typing import Final

from agboss_temporal.views.looks import Tone

LIGHT: Final[dict[str, str]] = {
    "paper": "#ffffff",
    "card": "#f6f7f9",
    "ink": "#1c2128",
    "line": "#8b949e",
    "": "#1c2128",
    "good": "#00704f",
    "bad": "#b03a00",
    "doubt": "#7d5200",
    "open": "#9a3a78",
    "busy": "#005f9e",
    "quiet": "#57606a",
}
DARK: Final[dict[str, str]] = {
    "paper": "#0d1117",
    "card": "#171c24",
    "ink": "#e6e9ee",
    "line": "#6b7480",
    "": "#e6e9ee",
    "good": "#3fd1a4",
    "bad": "#ff8f5c",
    "doubt": "#f0c04a",
    "open": "#f0a3d0",
    "busy": "#7cc4ff",
    "quiet": "#a4adb8",
}

DASHES: Final[dict[Tone, str]] = {"doubt": "6 4", "open": "2 4"}
"""How the border of a card is broken, by its tone."""

TONES: Final[tuple[Tone, ...]] = ("", "good", "bad", "doubt", "open", "busy", "quiet")

SANS: Final = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif'
MONO: Final = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'


def tone_class(tone: Tone) -> str:
    """Name the class of a tone."""
    return f"tone-{tone or 'plain'}"


def both(rules: str, *, light: dict[str, str] = LIGHT, dark: dict[str, str] = DARK) -> str:
    """Write rules in both colour schemes; ``{ink}`` and the like stand for colours.

    Plain colours, no variables: not every program that shows an SVG knows those.
    """
    return "\n".join(
        [
            _filled(rules, light),
            "@media (prefers-color-scheme: dark) {",
            _filled(rules, dark),
            "}",
        ]
    )


def _filled(rules: str, colours: dict[str, str]) -> str:
    for name, colour in colours.items():
        rules = rules.replace(f"{{{name or 'plain'}}}", colour)
    return rules
