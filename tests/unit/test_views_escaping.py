"""No name acts on the reader: not on a terminal, not in markup, not in a graph."""

from __future__ import annotations

import json
import re
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.views import html_page, json_text, mermaid, svg, text
from agboss_temporal.views.printable import columns_of, shorten, visible, wrap
from tests.unit.ledgers import HOSTILE, hostile

pieces = st.one_of(
    st.sampled_from([*HOSTILE.values(), "<", ">", "&", '"', "'", "]]>", "-->", "\x1b[", "#60;"]),
    st.text(st.characters(), max_size=12),
)
names = st.lists(pieces, max_size=4).map("".join)
many_names = st.lists(names, min_size=4, max_size=6)

ACTING = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}

SVG_PARTS = {
    "svg": {"class", "width", "height", "viewBox", "role"},
    "title": set(),
    "desc": set(),
    "style": set(),
    "g": set(),
    "text": {"x", "y", "class"},
    "rect": {"class", "x", "y", "rx", "width", "height", "stroke-dasharray"},
    "path": {"class", "d", "stroke-dasharray"},
}
HTML_PARTS = {
    "html": {"lang"},
    "meta": {"charset", "http-equiv", "content", "name"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "th": {"scope", "style"},
    "span": {"class"},
    **{name: set() for name in ("head", "title", "style", "body", "h1", "h2", "dl", "dt", "dd")},
    **{name: set() for name in ("section", "table", "thead", "tbody", "tr", "td", "p", "bdi")},
}


@given(names)
def test_what_is_visible_acts_on_nothing(name: str) -> None:
    assert not {unicodedata.category(character) for character in visible(name)} & ACTING


@given(st.text(st.characters(exclude_categories=["C", "M", "Z"]), max_size=40))
def test_an_ordinary_name_stays_what_it_is(name: str) -> None:
    assert visible(name) == name


@given(names, st.integers(2, 300))
def test_a_shortened_text_keeps_both_ends(name: str, limit: int) -> None:
    short = shorten(name, limit)
    assert len(short) <= max(limit, 2)
    assert short == name or (name.startswith(short[0]) and "…" in short)


@given(names, st.integers(4, 60))
def test_a_wrapped_text_fits_and_loses_nothing(name: str, width: int) -> None:
    shown = visible(name)
    lines = wrap(shown, width)
    assert all(columns_of(line) <= width for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", shown)


@given(many_names, st.booleans(), st.sampled_from([60, 80, 100, 160]))
def test_a_terminal_gets_nothing_but_text(chosen: list[str], colour: bool, width: int) -> None:
    drawn = text.draw(hostile(chosen), colour=colour, width=width)
    drawn = re.sub(r"\x1b\[(?:0|1|2|1;31|3[2-6])m", "" if colour else "\0", drawn)
    for line in drawn.split("\n"):
        assert not {unicodedata.category(c) for c in line} & ACTING, line
        assert columns_of(line) <= width


@given(many_names)
def test_a_drawing_is_well_formed_and_nothing_but_shapes(chosen: list[str]) -> None:
    root = ElementTree.fromstring(svg.draw(hostile(chosen)))
    for element in root.iter():
        name = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
        assert set(element.attrib) <= SVG_PARTS[name]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


@given(many_names)
def test_a_page_is_nothing_but_text_and_tables(chosen: list[str]) -> None:
    page = _Page()
    page.feed(html_page.draw(hostile(chosen)))
    page.close()
    for tag, attributes in page.parts:
        known = HTML_PARTS.get(tag, set()) | {n.lower() for n in SVG_PARTS.get(tag, set())}
        assert set(attributes) <= known | ({"xmlns"} if tag == "svg" else set()), tag
        assert tag in HTML_PARTS or tag in SVG_PARTS


@pytest.mark.parametrize("name", ["markup", "terminal", "hebrew", "mermaid"])
def test_a_page_shows_the_name_itself(name: str) -> None:
    page = _Page()
    page.feed(html_page.draw(hostile([HOSTILE[name]] * 4)))
    assert visible(HOSTILE[name]) in page.words


def test_a_page_loads_nothing() -> None:
    page = html_page.draw(hostile())
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|@import|@font-face|url\(|src=['\"]|href=", page)


LABEL = r'"(?:[\w ,.()/+-]|#\d+;|<br>)+"'
LINES = [
    r'subgraph c\d+\[" "\]',
    r"end",
    r"  direction (?:LR|TB)",
    rf"  [au]\d+\[{LABEL}\]",
    r"  a\d+ (?:---|-\.-) u\d+",
    rf"c\d+\[\[{LABEL}\]\]",
    rf"c\d+\{{\{{{LABEL}\}}\}}",
    r"c\d+(?: --> c\d+)*",
    r"classDef [\w-]+ [\w:,# -]+",
    r"class [acu\d,]+ [\w-]+",
]
"""Every kind of line that a graph has."""


@given(many_names)
def test_a_graph_has_no_line_of_somebody_else(chosen: list[str]) -> None:
    first, *lines = mermaid.draw(hostile(chosen)).rstrip("\n").split("\n")
    assert first in ("flowchart LR", "flowchart TB")
    for line in lines:
        assert any(re.fullmatch(f"  {kind}", line) for kind in LINES), line


@given(names)
def test_a_label_says_what_it_was_given(name: str) -> None:
    label = mermaid.escaped(name)
    told = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label)
    assert told == shorten(visible(name), 48)


@given(many_names)
def test_json_is_ascii_and_says_all(chosen: list[str]) -> None:
    drawn = json_text.draw(hostile(chosen))
    assert all(character == "\n" or " " <= character <= "~" for character in drawn)
    assert json.loads(drawn) == hostile(chosen).to_dict()
