"""The two search attributes that a run may have, and whether a namespace knows them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError

from agboss_temporal.exceptions import ConfigurationError

logger: Final = logging.getLogger("agboss_temporal")

STATUS: Final = SearchAttributeKey.for_keyword("CompensationStatus")
"""The status that the run's report had when it was written."""

OPEN: Final = SearchAttributeKey.for_int("CompensationOpen")
"""How many effects were neither sealed nor undone then."""

KEYWORD: Final = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
INT: Final = IndexedValueType.INDEXED_VALUE_TYPE_INT

_TYPES: Final = {STATUS.name: KEYWORD, OPEN.name: INT}

_COMMAND: Final = "agboss-temporal search-attributes register"


async def missing(client: Client) -> list[str]:
    """List the search attributes that the client's namespace lacks.

    Raises:
        ConfigurationError: The namespace has one of them with another type.
        RPCError: The server does not say.
    """
    known = await _known(client)
    wrong = [
        f"{name} is of type {_named(known[name])}, not {_named(wanted)}"
        for name, wanted in _TYPES.items()
        if name in known and known[name] != wanted
    ]
    if wrong:
        raise ConfigurationError(
            f"in namespace {client.namespace!r}, search attribute {', and '.join(wrong)}; remove "
            f"or rename it there, then run `{_COMMAND}`"
        )
    return [name for name in _TYPES if name not in known]


async def register(client: Client) -> list[str]:
    """Register what the client's namespace lacks.

    Returns:
        The names of what was registered now.

    Raises:
        ConfigurationError: The namespace has one of them with another type.
        RPCError: The server refuses, as Temporal Cloud does: there they are registered in its own
            user interface.
    """
    names = await missing(client)
    if names:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace=client.namespace,
                search_attributes={name: _TYPES[name] for name in names},
            )
        )
    return names


async def fault(client: Client) -> ConfigurationError | None:
    """Say why runs of a namespace cannot have the search attributes, if that is known."""
    try:
        names = await missing(client)
    except ConfigurationError as err:
        return err
    except RPCError as err:
        logger.warning(
            "cannot find out whether namespace %s has the search attributes %s: the server "
            "answered %s. Workflow tasks of runs that unwind fail if it lacks them",
            client.namespace,
            ", ".join(_TYPES),
            err.status.name,
        )
        return None
    if not names:
        return None
    told = ", ".join(f"{name} ({_named(_TYPES[name])})" for name in names)
    return ConfigurationError(
        f"namespace {client.namespace!r} lacks the search attributes {told}; run `{_COMMAND} "
        f"--namespace {client.namespace}`, or leave out search_attributes=True"
    )


async def _known(client: Client) -> Mapping[str, IndexedValueType.ValueType]:
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    return answer.custom_attributes


def _named(kind: IndexedValueType.ValueType) -> str:
    name = IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_")
    return name.title().replace("_", "")
