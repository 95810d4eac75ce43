"""What the command line imports for its user."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.converter import DataConverter

from agboss_temporal.cli import loading
from agboss_temporal.cli.command import CannotRunError
from agboss_temporal.cli.parser import build
from tests.unit.conftest import Modules

CODEC = """
from temporalio.converter import DataConverter, PayloadCodec

class Codec(PayloadCodec):
    async def encode(self, payloads):
        return list(payloads)

    async def decode(self, payloads):
        return list(payloads)

codec = Codec()

class Keys:
    codec = codec

def converter():
    return DataConverter(payload_codec=codec)

def broken():
    raise ValueError("no key")

seven = 7
"""


def converter(*arguments: str) -> DataConverter:
    return loading.data_converter(build().parse_args(["status", "w", *arguments]))


def test_the_default_converter_is_the_default() -> None:
    assert converter() is DataConverter.default


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--codec", "keys_for_cli:codec"),
        ("--codec", "keys_for_cli:Codec"),
        ("--codec", "keys_for_cli:Keys.codec"),
        ("--data-converter", "keys_for_cli:converter"),
    ],
)
def test_a_codec_is_an_object_or_what_makes_one(modules: Modules, option: str, name: str) -> None:
    modules.write("keys_for_cli", CODEC)
    assert type(converter(option, name).payload_codec).__name__ == "Codec"


@pytest.mark.parametrize(
    ("option", "name", "told"),
    [
        ("--codec", "keys_for_cli", "not of the form module:attribute"),
        ("--codec", "no_such_module:x", "cannot import no_such_module: ModuleNotFoundError"),
        ("--codec", "keys_for_cli:nothing", "has no 'nothing'"),
        ("--codec", "keys_for_cli:seven", "no PayloadCodec"),
        ("--codec", "keys_for_cli:converter", "no PayloadCodec"),
        ("--data-converter", "keys_for_cli:codec", "no DataConverter"),
        ("--data-converter", "keys_for_cli:broken", "failed: ValueError: no key"),
    ],
)
def test_what_cannot_be_used_is_told(modules: Modules, option: str, name: str, told: str) -> None:
    modules.write("keys_for_cli", CODEC)
    with pytest.raises(CannotRunError, match=told):
        converter(option, name)


def names(*modules_named: str) -> list[str] | None:
    options = [part for name in modules_named for part in ("--contracts", name)]
    found = loading.contracts(build().parse_args(["status", "w", *options]))
    return None if found is None else sorted(contract.action for contract in found)


def test_no_contracts_are_not_an_empty_list() -> None:
    assert names() is None


def test_contracts_are_those_of_a_module_and_of_what_it_imports(modules: Modules) -> None:
    modules.write(
        "far_for_cli",
        "from agboss_temporal import declare\ndeclare('far', compensate_with='back')\n",
    )
    modules.write(
        "near_for_cli",
        "import far_for_cli\nfrom agboss_temporal import declare\n"
        "declare('near', compensate_with='back')\n",
    )
    modules.write(
        "other_for_cli",
        "from agboss_temporal import declare\ndeclare('other', compensate_with='back')\n",
    )
    assert names("far_for_cli") == ["far"]
    assert names("near_for_cli") == ["far", "near"]
    assert names("near_for_cli", "other_for_cli", "far_for_cli") == ["far", "near", "other"]


def test_two_answers_for_one_name_are_refused(modules: Modules) -> None:
    for name, undo in (("one_for_cli", "a"), ("two_for_cli", "b")):
        modules.write(
            name,
            f"from agboss_temporal import declare\ndeclare('book', compensate_with='{undo}')\n",
        )
    with pytest.raises(CannotRunError, match=r"book is declared differently at .*one_for_cli"):
        names("one_for_cli", "two_for_cli")


def test_a_module_without_contracts_is_a_mistake(modules: Modules) -> None:
    modules.write("plain_for_cli", "x = 1\n")
    with pytest.raises(CannotRunError, match="plain_for_cli declares nothing"):
        names("plain_for_cli")


def test_a_module_that_fails_is_told(modules: Modules) -> None:
    modules.write("bad_for_cli", "raise RuntimeError('no database')\n")
    with pytest.raises(CannotRunError, match="cannot import bad_for_cli: RuntimeError: no data"):
        names("bad_for_cli")


def test_the_working_directory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "here_for_cli.py").write_text(
        "from agboss_temporal import declare\ndeclare('here', compensate_with='back')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)  # so that the search path is put back
    monkeypatch.chdir(folder)
    assert names("here_for_cli") == ["here"]
