"""Connecting as Temporal's own command line does: flags, else environment, else a profile."""

from __future__ import annotations

import re
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agboss_temporal.cli import loading
from agboss_temporal.cli.command import CannotRunError

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.envconfig import ClientConfigProfile, ClientConfigTLS

DEFAULT_ADDRESS: Final = "localhost:7233"


def add_options(parser: ArgumentParser) -> None:
    """Add the options that say where the server is and how its payloads are encoded."""
    group = parser.add_argument_group(
        "connection",
        "As for the temporal command: a flag wins over TEMPORAL_* variables, and these win over "
        "the profile in the configuration file.",
    )
    add = group.add_argument
    add("--address", metavar="HOST:PORT", help=f"of the server (default: {DEFAULT_ADDRESS})")
    add("-n", "--namespace", metavar="NAME", help="of the workflows (default: default)")
    add("--api-key", metavar="KEY", help="for the server; TEMPORAL_API_KEY keeps it off the screen")
    add("--tls", action=BooleanOptionalAction, default=None, help="whether to use TLS")
    add("--tls-cert-path", metavar="FILE", help="client certificate")
    add("--tls-key-path", metavar="FILE", help="client key")
    add("--tls-ca-path", metavar="FILE", help="certificate of the server's authority")
    add("--tls-server-name", metavar="NAME", help="name that the server's certificate has")
    add("--profile", metavar="NAME", help="profile of the configuration file")
    add("--config-file", metavar="FILE", help="configuration file, in TOML")
    add(
        "--client-connect-timeout",
        metavar="SECONDS",
        type=float,
        default=10.0,
        help="how long to try (default: 10)",
    )


def converter_options(parser: ArgumentParser) -> None:
    """Add the options that say how payloads are encoded."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--data-converter",
        metavar="MODULE:ATTRIBUTE",
        help="a DataConverter, or what makes one: needed where headers or memos are encoded",
    )
    group.add_argument(
        "--codec",
        metavar="MODULE:ATTRIBUTE",
        help="a PayloadCodec, or what makes one, for the default converter",
    )


async def connect(arguments: Namespace) -> Client:
    """Connect to the server.

    Raises:
        CannotRunError: There is no such profile or file, or the server cannot be reached.
    """
    import asyncio

    from temporalio.client import Client

    options = _options(arguments)
    options["data_converter"] = loading.data_converter(arguments)
    where = options.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        async with asyncio.timeout(arguments.client_connect_timeout):
            return await Client.connect(**options)
    except TimeoutError:
        reason = f"no answer in {arguments.client_connect_timeout:g} s"
    except (RuntimeError, ValueError) as err:
        reason = _reason(str(err))
    raise CannotRunError(f"cannot connect to {where}: {reason}; --address says where the server is")


def _reason(text: str) -> str:
    """Take the innermost message out of the nested ones of the SDK's core."""
    inner: list[str] = re.findall(r'(?:message|error): "([^"]+)"', text)
    return inner[-1] if inner else text.removeprefix("Failed client connect: ")


def _options(arguments: Namespace) -> dict[str, Any]:
    from temporalio.envconfig import ClientConfigProfile

    source = None if arguments.config_file is None else Path(arguments.config_file)
    if source is not None and not source.is_file():
        raise CannotRunError(f"cannot read the configuration: {source} is no file")
    try:
        profile = ClientConfigProfile.load(arguments.profile, config_source=source)
        return dict(_with_flags(profile, arguments).to_client_connect_config())
    except (RuntimeError, OSError, ValueError) as err:
        raise CannotRunError(f"cannot read the configuration: {err}") from err


def _with_flags(profile: ClientConfigProfile, arguments: Namespace) -> ClientConfigProfile:
    from dataclasses import replace

    given: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("address", "namespace", "api_key")
        if getattr(arguments, name) is not None
    }
    tls = _tls(profile.tls, arguments)
    return replace(profile, **given, tls=tls)


def _tls(known: ClientConfigTLS | None, arguments: Namespace) -> ClientConfigTLS | None:
    from dataclasses import replace

    from temporalio.envconfig import ClientConfigTLS

    given: dict[str, Any] = {
        name: Path(path)
        for name, path in (
            ("client_cert", arguments.tls_cert_path),
            ("client_private_key", arguments.tls_key_path),
            ("server_root_ca_cert", arguments.tls_ca_path),
        )
        if path is not None
    }
    if arguments.tls_server_name is not None:
        given["server_name"] = arguments.tls_server_name
    if arguments.tls is not None:
        given["disabled"] = not arguments.tls
    return replace(known or ClientConfigTLS(), **given) if given else known
