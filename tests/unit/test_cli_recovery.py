"""``plan``, ``recover`` and ``sweep``: what they show, when they ask, and how they end."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from agboss_temporal import recovery as real
from agboss_temporal.cli import connection, execute
from agboss_temporal.recovery import (
    Plan,
    PlannedUndo,
    Recovery,
    RecoveryRefused,
    Sweep,
    SweptRun,
    UndoResult,
)
from tests.unit.ledgers import START
from tests.unit.test_cli_asking import Terminal

OPEN = Plan(
    "order-7",
    "run-1",
    (
        PlannedUndo("k-3", "charge", "refund", "order-7", "run-1", "completed", "orders", START),
        PlannedUndo("k-1", "pack\x1b[2J", "unpack", "order-7-pack", "run-9", "unknown", "packing"),
    ),
)
NOTHING = Plan("order-7", "run-1")
NEWER = replace(OPEN, newer_run_id="run-2")


def recovered(verdict: str | None, reason: str | None = None, **more: Any) -> Recovery:
    undo = UndoResult("k-3", "charge", "refund", "order-7", verdict, reason)
    return Recovery("order-7", "run-1", ("agboss-recovery/1",), (undo,), **more)


DONE = recovered("undone")


@dataclass
class Fake:
    """Stands for `agboss_temporal.recovery`, and remembers what it was asked for."""

    plan: Plan | Exception = OPEN
    outcome: Recovery = DONE
    before: tuple[SweptRun, ...] = ()
    after: tuple[SweptRun, ...] = ()
    asked: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def recovery(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()

    async def connect(_: object) -> None:
        return None

    async def plan(*_: object, **__: object) -> Plan:
        if isinstance(made.plan, Exception):
            raise made.plan
        return made.plan

    async def recover(*_: object, **options: Any) -> Recovery:
        made.asked.append(options)
        return made.outcome

    async def sweep(*_: object, **options: Any) -> Sweep:
        made.asked.append(options)
        return Sweep("q", made.before if options["dry_run"] else made.after)

    monkeypatch.setattr(connection, "connect", connect)
    monkeypatch.setattr(real, "plan", plan)
    monkeypatch.setattr(real, "recover", recover)
    monkeypatch.setattr(real, "sweep", sweep)
    return made


def answer(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))


def test_a_plan_shows_all_undos_in_order(
    recovery: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["plan", "order-7"]) == 1
    shown = capsys.readouterr().out
    assert shown.index("refund") < shown.index("unpack")
    assert "action in doubt" in shown
    assert "2026-03-14" in shown
    assert "\x1b" not in shown


def test_a_plan_is_json_too(recovery: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["plan", "order-7", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [undo["key"] for undo in found["undos"]] == ["k-3", "k-1"]
    assert found["undos"][0]["started_at"] == START.isoformat()


def test_a_plan_of_nothing_is_clean(recovery: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    recovery.plan = NOTHING
    assert execute(["plan", "order-7"]) == 0
    assert "nothing is open" in capsys.readouterr().out
    recovery.plan = replace(NOTHING, notes=("child c runs",))
    assert execute(["plan", "order-7"]) == 1


@pytest.mark.parametrize("command", [["plan"], ["recover", "--yes"]])
def test_a_refusal_is_told_in_its_own_words(
    recovery: Fake, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    recovery.plan = RecoveryRefused("open", "the run is open; cancel it instead")
    assert execute([*command, "order-7"]) == 2
    assert capsys.readouterr().err == "agboss-temporal: the run is open; cancel it instead\n"
    assert not recovery.asked


def test_a_recovery_shows_its_plan_and_asks(
    recovery: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "y")
    assert execute(["recover", "order-7"]) == 0
    shown = capsys.readouterr()
    assert "Recovery plan of order-7" in shown.err
    assert "Run the undos of order-7? [y/N]" in shown.err
    assert "✓ undone" in shown.out
    assert recovery.asked == [
        {"contracts": None, "on_newer_run": False, "wait": True, "task_queue": None}
    ]


def test_a_recovery_is_json_too(recovery: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    recovery.outcome = recovered("undone")
    assert execute(["recover", "order-7", "--yes", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["undos"][0]["verdict"]) == ("completed", "undone")


def test_what_is_under_way_is_waited_for_without_a_question(recovery: Fake) -> None:
    recovery.plan = replace(NOTHING, under_way=("agboss-recovery/1",))
    assert execute(["plan", "order-7"]) == 1
    assert execute(["recover", "order-7"]) == 0
    assert len(recovery.asked) == 1


def test_a_recovery_runs_on_the_queue_that_is_given(recovery: Fake) -> None:
    assert execute(["recover", "order-7", "--yes", "--task-queue", "spare"]) == 0
    assert recovery.asked[0]["task_queue"] == "spare"


@pytest.mark.parametrize("words", [(), ("n",), ("",)])
def test_without_a_yes_nothing_is_undone(
    recovery: Fake, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, *words)
    assert execute(["recover", "order-7"]) == 1
    assert not recovery.asked


def test_where_nobody_can_be_asked_it_takes_a_flag(
    recovery: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    assert execute(["recover", "order-7"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert not recovery.asked
    assert execute(["recover", "order-7", "--yes"]) == 0
    assert len(recovery.asked) == 1


def test_nothing_to_recover_asks_nothing(recovery: Fake) -> None:
    recovery.plan = NOTHING
    assert execute(["recover", "order-7"]) == 0
    assert not recovery.asked


def test_what_is_left_after_a_recovery_decides_the_exit_code(
    recovery: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    recovery.outcome = recovered("failed", "Down")
    assert execute(["recover", "order-7", "--yes"]) == 1
    assert "Down" in capsys.readouterr().out
    recovery.outcome = recovered("undone", notes=("look at it",))
    assert execute(["recover", "order-7", "--yes"]) == 1
    assert "look at it" in capsys.readouterr().out
    recovery.outcome = recovered(None)
    assert execute(["recover", "order-7", "--yes", "--no-wait"]) == 0
    recovery.outcome = recovered(None, left=3)
    assert execute(["recover", "order-7", "--yes", "--no-wait"]) == 1
    assert "3 undos: recover again" in capsys.readouterr().out
    assert recovery.asked[-1]["wait"] is False


def test_a_newer_run_takes_a_word_of_its_own(
    recovery: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recovery.plan = NEWER
    assert execute(["recover", "order-7", "--yes"]) == 2
    assert "--on-newer-run" in capsys.readouterr().err
    answer(monkeypatch, "n")
    assert execute(["recover", "order-7"]) == 1
    assert not recovery.asked
    answer(monkeypatch, "y", "y")
    assert execute(["recover", "order-7"]) == 0
    assert execute(["recover", "order-7", "--yes", "--on-newer-run"]) == 0
    assert [each["on_newer_run"] for each in recovery.asked] == [True, True]


FOUND = (
    SweptRun("w-1", "r-1", "planned", "2 undos", is_clean=False),
    SweptRun("w-2", "r-2", "none"),
)
SWEPT = (SweptRun("w-1", "r-1", "completed", "2 undone"), SweptRun("w-2", "r-2", "none"))


def test_a_sweep_shows_what_it_would_do_and_asks(
    recovery: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recovery.before, recovery.after = FOUND, SWEPT
    answer(monkeypatch, "y")
    assert execute(["sweep", "WorkflowType = 'Order'", "--concurrency", "3"]) == 0
    shown = capsys.readouterr()
    assert "in 1 of 2 runs?" in shown.err
    assert "2 undone" in shown.out
    assert [(each["dry_run"], each["concurrency"]) for each in recovery.asked] == [
        (True, 3),
        (False, 3),
    ]


@pytest.mark.parametrize(
    ("arguments", "found", "code"),
    [
        (["--dry-run"], FOUND, 1),
        (["--dry-run"], SWEPT, 0),
        ([], SWEPT, 0),
    ],
)
def test_a_sweep_that_only_looks_does_nothing(
    recovery: Fake, arguments: list[str], found: tuple[SweptRun, ...], code: int
) -> None:
    recovery.before = found
    assert execute(["sweep", "q", *arguments]) == code
    assert [each["dry_run"] for each in recovery.asked] == [True]


def test_a_sweep_that_leaves_something_says_so(
    recovery: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    recovery.before = FOUND
    recovery.after = (SweptRun("w-1", "r-1", "partial", "1 of 2", is_clean=False),)
    assert execute(["sweep", "q", "--yes", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["result"] == "partial"
