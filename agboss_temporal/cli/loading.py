"""What a user names by module: converters, codecs, and the declarations of contracts."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agboss_temporal.cli.command import CannotRunError

if TYPE_CHECKING:
    from temporalio.converter import DataConverter

    from agboss_temporal.core.contract import Contract


def contracts_option(parser: ArgumentParser) -> None:
    """Add the option that names declarations."""
    parser.add_argument(
        "--contracts",
        metavar="MODULE",
        action="append",
        default=[],
        help="a module with @action or declare, by which actions without a record are judged; "
        "may be repeated",
    )


def contracts(arguments: Namespace) -> list[Contract] | None:
    """Import the modules that were named, and collect what they declare.

    Returns:
        The contracts, or ``None`` if no module was named.

    Raises:
        CannotRunError: A module cannot be imported or declares nothing.
    """
    names: Sequence[str] = arguments.contracts
    if not names:
        return None
    from agboss_temporal import registry

    found: dict[tuple[str, str], Contract] = {}
    for name in names:
        _module(name)
        declared = registry.reached_from(name)
        if not declared:
            raise CannotRunError(f"--contracts: {name} declares nothing with @action or declare")
        for contract in declared:
            other = found.setdefault((contract.kind, contract.action), contract)
            if other != contract:
                raise CannotRunError(
                    f"--contracts: {contract.action} is declared differently at {other.place} "
                    f"and at {contract.place}; name the module of one of them"
                )
    return list(found.values())


def data_converter(arguments: Namespace) -> DataConverter:
    """Return the converter that was named, or the default one, with the codec that was named."""
    from dataclasses import replace

    from temporalio.converter import DataConverter, PayloadCodec

    if arguments.data_converter is not None:
        found: DataConverter = _made("--data-converter", arguments.data_converter, DataConverter)
        return found
    if arguments.codec is not None:
        codec = _made("--codec", arguments.codec, PayloadCodec)
        return replace(DataConverter.default, payload_codec=codec)
    return DataConverter.default


def _made(option: str, name: str, kind: type) -> Any:
    """Return an object that a user named, or what the named thing makes."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise CannotRunError(f"{option}: {name!r} is not of the form module:attribute")
    found: Any = _module(module)
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as err:
        raise CannotRunError(f"{option}: {module} has no {attribute!r}") from err
    if not isinstance(found, kind) and callable(found):
        try:
            found = found()
        except Exception as err:
            raise CannotRunError(f"{option}: {name}() failed: {type(err).__name__}: {err}") from err
    if not isinstance(found, kind):
        raise CannotRunError(f"{option}: {name} is no {kind.__name__}, and makes none")
    return found


def _module(name: str) -> Any:
    """Import a module as ``python -m`` would: the working directory counts."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except Exception as err:
        raise CannotRunError(f"cannot import {name}: {type(err).__name__}: {err}") from err
