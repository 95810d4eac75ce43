"""The Python in the documents is real: it compiles, and it runs in the order of reading."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from agboss_temporal import registry
from tests.packaging.tree import ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```\s*$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block of Python, and the line of the document on which its code begins."""

    document: str
    line: int
    info: str
    code: str

    @property
    def runs(self) -> bool:
        return self.info == "python"

    def compiled(self) -> object:
        """Compile it so that a traceback points into the document."""
        padded = "\n" * (self.line - 1) + self.code
        flags = 0 if self.runs else ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        return compile(padded, self.document, "exec", flags=flags, dont_inherit=True)


def blocks(document: str, text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        info = match["info"].strip()
        if info.split(" ")[0] not in ("python", "py", "python3"):
            continue
        assert info in ("python", "python no-run"), f"{document}: {info!r} is neither"
        line = text.count("\n", 0, match.start("code")) + 1
        code = re.sub(f"^{match['indent']}", "", match["code"], flags=re.M)
        found.append(Block(document, line, info, code))
    return found


def run(found: list[Block], module: ModuleType) -> None:
    """Run blocks one after another, as one module that a reader writes down."""
    for block in found:
        code = block.compiled()
        if block.runs:
            exec(code, vars(module))  # type: ignore[arg-type]


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """A module to run blocks in; the process forgets it, and its contracts, afterwards."""
    made = ModuleType("readme_of_agboss")
    before = dict(registry._contracts)
    sys.modules[made.__name__] = made
    yield made
    del sys.modules[made.__name__]
    registry._contracts.clear()
    registry._contracts.update(before)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_python_of_a_document_runs(path: Path, module: ModuleType) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(blocks(str(path), path.read_text()), module)


TEXT = """
Words.

```python
one = 1
```

- item

  ```python
  two = one + 1
  ```

```bash
not python
```

```python no-run
client = await connect(two)
```
"""


def test_blocks_are_found_with_their_lines_and_share_their_names(module: ModuleType) -> None:
    found = blocks("some.md", TEXT)
    assert [(b.line, b.info) for b in found] == [
        (5, "python"),
        (11, "python"),
        (19, "python no-run"),
    ]
    run(found, module)
    assert vars(module)["two"] == 2
    assert "client" not in vars(module)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("```python\none = \n```\n", SyntaxError),
        ("```python no-run\none = \n```\n", SyntaxError),
        ("```python\nmissing\n```\n", NameError),
        ("```python\nawait connect()\n```\n", SyntaxError),
        ("```python norun\none = 1\n```\n", AssertionError),
        ("```py\none = 1\n```\n", AssertionError),
    ],
)
def test_a_block_that_is_wrong_is_told(
    code: str, error: type[Exception], module: ModuleType
) -> None:
    with pytest.raises(error):
        run(blocks("some.md", code), module)


def test_an_error_points_into_the_document(module: ModuleType) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run(blocks("some.md", "\n\n```python\none = 1\none / 0\n```\n"), module)
    last = raised.traceback[-1]
    assert (str(last.frame.code.path), last.lineno + 1) == ("some.md", 5)
