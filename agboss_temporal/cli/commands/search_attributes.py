"""``search-attributes``: what ``CompensationPlugin(search_attributes=True)`` needs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from agboss_temporal.cli import connection, interrupting
from agboss_temporal.cli.command import Command, Exit


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("verb", choices=["check", "register"], help="whether to look, or to do it")
    connection.converter_options(parser)
    connection.add_options(parser)


def _run(arguments: Namespace) -> int:
    return interrupting.run(_do(arguments))


async def _do(arguments: Namespace) -> int:
    from agboss_temporal import search_attributes

    client = await connection.connect(arguments)
    if arguments.verb == "check":
        names = await search_attributes.missing(client)
        sys.stdout.write(f"missing: {', '.join(names)}\n" if names else "all there\n")
        return Exit.TROUBLE if names else Exit.CLEAN
    names = await search_attributes.register(client)
    sys.stdout.write(f"registered: {', '.join(names)}\n" if names else "all there already\n")
    return Exit.CLEAN


COMMAND = Command(
    name="search-attributes",
    help="register the search attributes of runs that unwind, or look whether they are there",
    description="Register CompensationStatus and CompensationOpen in a namespace, or look whether "
    "they are there. A worker with CompensationPlugin(search_attributes=True) needs them.",
    configure=_configure,
    run=_run,
)
