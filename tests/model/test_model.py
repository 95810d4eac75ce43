"""Random programs on the real server do to the world what the reference says.

``MODEL_PROGRAMS`` (100) says how many programs are run, ``MODEL_SEED`` which. A mismatch is made
small and printed as the Python that makes the program: keep it in ``regressions.py``. The seed that
a failure prints, with the same number of programs, makes it again:

    MODEL_SEED=17 MODEL_PROGRAMS=3000 make test ARGS=tests/model

A program holds all that a server and a scheduler leave open, see `script`, so its outcome is one:
the order of all effects, what each undo is given, how the run closes, the report.
"""

from __future__ import annotations

import ast
import os
import random
from pathlib import Path

import pytest
from temporalio.testing import WorkflowEnvironment

from tests.model import hunt
from tests.model.faults import FAULTS
from tests.model.lab import Lab, determined
from tests.model.regressions import REGRESSIONS

pytestmark = [
    pytest.mark.timeout(1800),
    # The SDK warns of handlers that a run leaves behind; programs do that on purpose.
    pytest.mark.filterwarnings("ignore"),
]

PROGRAMS = int(os.environ.get("MODEL_PROGRAMS", "100"))
SEED = int(os.environ.get("MODEL_SEED") or "1")
if os.environ.get("MODEL_SEED") == "random":
    SEED = random.randrange(100_000)

INDEPENDENT = ("program", "script", "outcome", "reference*")

FOUND_WITHIN = {
    "no settle": 34,
    "done-callback": 34,
    "start order": 68,
    "unwind on eviction": 68,
    "doubtful committer seals": 34,
}
"""How many programs of seed 1 find a fault: whole batches."""


async def test_random_programs_do_what_the_model_says(server: WorkflowEnvironment) -> None:
    lab = Lab(server.client)
    for number, programs, cache in hunt.batches(SEED, PROGRAMS):
        mismatches = await lab.compare(determined(programs), cache=cache)
        if mismatches:
            first = min(mismatches, key=lambda m: len(str(m.program)))
            least = await hunt.small(lab, number, len(programs), cache, first)
            pytest.fail(
                f"MODEL_SEED={SEED}, MODEL_PROGRAMS={PROGRAMS}, cache {cache}: "
                f"{len(mismatches)} of {len(programs)} programs of a batch; the least\n{least}"
            )


@pytest.mark.parametrize("cache", [1000, 0], ids=["cached", "uncached"])
async def test_what_was_once_wrong_stays_right(server: WorkflowEnvironment, cache: int) -> None:
    names = {program: name for name, program in REGRESSIONS.items()}
    assert determined(list(names)) == list(names)
    found = await Lab(server.client).compare(list(names), cache=cache)
    assert not found, "\n".join(f"{names[m.program]}: {m}" for m in found)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_in_the_library_is_found(server: WorkflowEnvironment, fault: str) -> None:
    lab = Lab(server.client, patience=5)
    with FAULTS[fault]():
        for _, programs, cache in hunt.batches(1, FOUND_WITHIN[fault]):
            if await lab.compare(determined(programs), cache=cache):
                return
    pytest.fail(f"not found within {FOUND_WITHIN[fault]} programs")


@pytest.mark.parametrize("pattern", INDEPENDENT)
def test_the_reference_knows_nothing_of_the_library(pattern: str) -> None:
    paths = list(Path(__file__).parent.glob(f"{pattern}.py"))
    assert paths
    allowed = {p.stem for name in INDEPENDENT for p in Path(__file__).parent.glob(f"{name}.py")}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                assert not name.startswith(("agboss", "temporalio")), (path.name, name)
                if name.startswith("tests."):
                    assert name.split(".")[2] in {*allowed, "program"}, (path.name, name)
