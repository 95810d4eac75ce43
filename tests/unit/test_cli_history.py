"""``status --history``: exit codes, formats, and what is said when it cannot run."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agboss_temporal.cli import execute, showing
from tests.unit.conftest import Modules

HISTORIES = Path(__file__).parents[1] / "replay" / "histories"


def path_of(name: str) -> str:
    return str(HISTORIES / f"{name}.json")


@pytest.mark.parametrize(
    ("name", "code"),
    [("good", 0), ("failed", 0), ("cancelled", 0), ("uncommitted", 0), ("undo-fails", 1)],
)
def test_the_exit_code_says_whether_anything_is_left(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["status", "--history", path_of(name)]) == code
    shown = capsys.readouterr()
    assert name in shown.out.split("\n")[0]
    assert not shown.err


def cut_short(name: str, events: int) -> str:
    found = json.loads((HISTORIES / f"{name}.json").read_text())
    return json.dumps({"events": found["events"][:events]})


def without_event(name: str, number: int) -> str:
    found = json.loads((HISTORIES / f"{name}.json").read_text())
    del found["events"][number - 1]
    return json.dumps(found)


def test_a_run_that_goes_on_is_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "open.json"
    file.write_text(cut_short("good", 10))
    assert execute(["status", "--history", str(file)]) == 0
    assert "open, at event 10" in capsys.readouterr().out


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "gzip"])
def test_a_dash_is_standard_input(
    pack: type[bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pack(Path(path_of("undo-fails")).read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert execute(["status", "--history", "-"]) == 1
    assert "ReleaseBroken" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("text", "UndoFails undo-fails"),
        ("json", "{"),
        ("mermaid", "flowchart"),
        ("svg", "<svg "),
        ("html", "<!doctype html>"),
    ],
)
def test_every_format_is_there(form: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status", "--history", path_of("undo-fails"), "--format", form]) == 1
    assert capsys.readouterr().out.startswith(begins)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"not json", "this is not an exported history: JSONDecodeError"),
        (b"\x1f\x8bnot gzip", "this is not an exported history"),
        (b'{"events": []}', "has no events"),
        (without_event("good", 3).encode(), "event 4: event 3 should stand here"),
        (b"\xff\xfe\x1b[2J", "this is not an exported history"),
    ],
)
def test_a_bad_file_is_told_in_one_line(
    content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad\x1b[31m.json"
    file.write_bytes(content)
    assert execute(["status", "--history", str(file)]) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert told in shown.err
    assert shown.err.count("\n") == 1
    assert "\x1b" not in shown.err


def test_a_missing_file_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status", "--history", "/no/such/file"]) == 2
    assert "cannot read /no/such/file: No such file" in capsys.readouterr().err


def test_debug_shows_where_it_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status", "--history", "/no/such/file", "--debug"]) == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.endswith("agboss-temporal: cannot read /no/such/file: No such file or directory\n")


def test_an_interrupt_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(showing, "drawn", interrupted)
    assert execute(["status", "--history", path_of("good")]) == 130


@pytest.mark.parametrize(
    ("arguments", "environment", "coloured"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {}, False),
    ],
)
def test_a_pipe_gets_no_colour_unless_told(
    arguments: list[str],
    environment: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    execute(["status", "--history", path_of("undo-fails"), *arguments])
    assert ("\x1b[" in capsys.readouterr().out) == coloured


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colour_unless_it_is_unwanted(
    environment: dict[str, str],
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    execute(["status", "--history", path_of("undo-fails")])
    assert ("\x1b[" in capsys.readouterr().out) == coloured


def run(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "agboss_temporal.cli", "status", "--history", *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    with run(path_of("undo-fails")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_an_output_without_the_symbols_gets_escapes() -> None:
    with run(path_of("undo-fails"), PYTHONIOENCODING="ascii") as process:
        told, error = process.communicate()
    assert process.returncode == 1
    assert b"\\u2717 failed" in told
    assert error == b""


def test_contracts_judge_what_has_no_record(
    modules: Modules, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run from before the plugin: its calls have no header."""
    found = json.loads((HISTORIES / "handed-over.json").read_text())
    for event in found["events"]:
        event.get("activityTaskScheduledEventAttributes", {}).pop("header", None)
    file = tmp_path / "plain.json"
    file.write_text(json.dumps(found))
    modules.write(
        "declared_for_cli",
        """
        from agboss_temporal import declare

        declare("reserve", compensate_with="release")
        """,
    )
    execute(["status", "--history", str(file)])
    assert "reserve" not in capsys.readouterr().out
    execute(["status", "--history", str(file), "--contracts", "declared_for_cli"])
    assert "judged by its contract" in capsys.readouterr().out
