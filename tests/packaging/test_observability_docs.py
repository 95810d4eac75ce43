"""What operators build on is in the document, and nothing is there that does not exist."""

from __future__ import annotations

import ast
import re

from agboss_temporal import search_attributes
from agboss_temporal.core import report
from agboss_temporal.telemetry import names
from tests.packaging.tree import ROOT, modules, parsed

TEXT = (ROOT / "docs" / "observability.md").read_text()

WORDS = set(re.findall(r"`([^`\n]+)`", TEXT))


def events() -> set[str]:
    """The events of all log records: the second argument of `log`, the first of `extra`."""
    found = set()
    for path in modules():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call):
                arguments = [a.value for a in node.args if isinstance(a, ast.Constant)]
                called = ast.unparse(node.func)
                names_log = called == "log" or any(
                    isinstance(a, ast.Name) and a.id == "log" for a in node.args
                )
                if names_log or called == "extra":
                    found.update([str(arguments[0])] if arguments else [])
    return found


def test_every_metric() -> None:
    told = {re.sub(r"_total.*", "", w) for w in WORDS if w.startswith("agboss_compensation_")}
    assert told == set(names.DESCRIPTIONS)


def test_every_attribute() -> None:
    values = [v for n, v in vars(names).items() if n.isupper() and n != "PREFIX"]
    ours = {v for v in values if isinstance(v, str) and v.startswith(names.PREFIX)}
    told = {w for w in WORDS if w.startswith(names.PREFIX) and "=" not in w}
    assert {name.removesuffix("<verdict>") for name in told} == ours
    assert {names.ERROR_TYPE, names.WORKFLOW_ID, names.RUN_ID, names.COMPENSATES} <= WORDS


def test_every_log_record() -> None:
    table = TEXT.split("## Log records")[1].split("## ")[0]
    told = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert set(told) == events()


def test_every_word() -> None:
    assert {*report.TRIGGERS, *report.VERDICTS, "join", "handler", "explicit"} <= WORDS
    assert {search_attributes.STATUS.name, search_attributes.OPEN.name} <= WORDS
