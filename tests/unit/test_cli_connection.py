"""Where a connection goes: flags, else environment, else profile, as for the temporal command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import TLSConfig

from agboss_temporal.cli import connection, execute
from agboss_temporal.cli.command import CannotRunError
from agboss_temporal.cli.parser import build

PROFILES = """
[profile.default]
address = "file:1"
namespace = "from-file"

[profile.cloud]
address = "cloud:7233"
namespace = "from-cloud"
api_key = "secret"

[profile.mutual]
address = "mutual:7233"
[profile.mutual.tls]
server_name = "inside"
client_cert_data = "certificate of the file"
client_key_data = "key of the file"
"""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("TEMPORAL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def profiles(tmp_path: Path) -> str:
    path = tmp_path / "profiles.toml"
    path.write_text(PROFILES)
    return str(path)


def options(*arguments: str) -> dict[str, Any]:
    return connection._options(build().parse_args(["status", "w", *arguments]))


def test_nothing_said_means_the_defaults() -> None:
    assert options() == {}
    assert connection.DEFAULT_ADDRESS == "localhost:7233"


def test_flag_beats_environment_beats_file(profiles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ("--config-file", profiles)
    assert options(*file) == {"target_host": "file:1", "namespace": "from-file"}
    monkeypatch.setenv("TEMPORAL_ADDRESS", "environment:2")
    assert options(*file)["target_host"] == "environment:2"
    assert options(*file)["namespace"] == "from-file"
    assert options(*file, "--address", "flag:3")["target_host"] == "flag:3"


def test_the_file_and_the_profile_may_be_named_by_the_environment(
    profiles: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", profiles)
    assert options()["target_host"] == "file:1"
    monkeypatch.setenv("TEMPORAL_PROFILE", "cloud")
    assert options()["target_host"] == "cloud:7233"
    assert options("--profile", "mutual")["target_host"] == "mutual:7233"


def test_an_api_key_means_tls(profiles: str) -> None:
    assert options("--config-file", profiles, "--profile", "cloud")["tls"] is True
    assert options("--api-key", "k") == {"api_key": "k", "tls": True}
    assert options("--api-key", "k", "--no-tls")["tls"] is False


def test_flags_of_tls_replace_what_the_profile_says_one_by_one(
    profiles: str, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(b"authority")
    chosen = ("--config-file", profiles, "--profile", "mutual")
    found = options(*chosen, "--tls-ca-path", str(authority), "--tls-server-name", "outside")
    assert found["tls"] == TLSConfig(
        server_root_ca_cert=b"authority",
        domain="outside",
        client_cert=b"certificate of the file",
        client_private_key=b"key of the file",
    )
    assert options(*chosen, "--no-tls")["tls"] is False
    assert options("--tls")["tls"] == TLSConfig()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--profile", "nobody"),
        ("--config-file", "/no/such/file"),
        ("--tls-cert-path", "/no/such/file"),
    ],
)
def test_what_cannot_be_read_is_told(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CannotRunError, match="cannot read the configuration"):
        options(*arguments)


def test_a_broken_configuration_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[profile")
    with pytest.raises(CannotRunError, match="cannot read the configuration"):
        options("--config-file", str(path))


def test_a_server_that_is_not_there_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert execute(["status", "w", "--address", "127.0.0.1:1"]) == 2
    told = capsys.readouterr().err
    assert told == (
        "agboss-temporal: cannot connect to 127.0.0.1:1: Connection refused; "
        "--address says where the server is\n"
    )
