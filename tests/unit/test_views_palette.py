"""The colours: text can be read in both schemes, and no two tones look alike to anybody."""

from __future__ import annotations

import itertools

import pytest

from agboss_temporal.core.entry import State
from agboss_temporal.views import looks, palette


def luminance(colour: str) -> float:
    """As WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "card"])
def test_text_stands_out_from_its_ground(scheme: dict[str, str], ground: str) -> None:
    for name in ("ink", *palette.TONES):
        assert contrast(scheme[name], scheme[ground]) >= 4.5, name


@pytest.mark.parametrize("scheme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_borders_stand_out_from_the_paper(scheme: dict[str, str]) -> None:
    assert contrast(scheme["line"], scheme["paper"]) >= 3


def test_every_state_has_a_symbol_of_its_own_and_a_tone() -> None:
    assert set(looks.SYMBOLS) == set(looks.TONES) == set(State)
    for one, other in itertools.combinations(State, 2):
        assert looks.SYMBOLS[one] != looks.SYMBOLS[other]


def test_both_schemes_have_every_colour() -> None:
    assert (
        palette.LIGHT.keys()
        == palette.DARK.keys()
        == {"paper", "card", "ink", "line"} | set(palette.TONES)
    )
