"""Nothing that cannot be taken back is done without a yes."""

from __future__ import annotations

import io
import sys
from argparse import Namespace

import pytest

from agboss_temporal.cli.asking import agreed
from agboss_temporal.cli.command import CannotRunError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "meant"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False), ("yeah\n", False)],
)
def test_only_yes_is_yes(
    answer: str, meant: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert agreed(Namespace(yes=False), "Run 3 undos?") == meant
    shown = capsys.readouterr()
    assert shown.err == "Run 3 undos? [y/N] "
    assert not shown.out


def test_yes_given_beforehand_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert agreed(Namespace(yes=True), "Run 3 undos?")
    assert not capsys.readouterr().err


def test_where_nobody_can_be_asked_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(CannotRunError, match="--yes"):
        agreed(Namespace(yes=False), "Run 3 undos?")
