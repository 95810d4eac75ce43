"""``status``: what became of the effects of a run."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from agboss_temporal.cli import connection, interrupting, loading, showing
from agboss_temporal.cli.command import CannotRunError, Command, Exit

if TYPE_CHECKING:
    from agboss_temporal.core.run_ledger import RunLedger


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("workflow_id", metavar="WORKFLOW_ID", nargs="?", help="the workflow")
    add("-r", "--run-id", metavar="RUN_ID", help="the run (default: the newest)")
    add(
        "--history",
        metavar="FILE",
        help="read an exported history instead (temporal workflow show -o json); - is standard "
        "input",
    )
    add("--watch", action="store_true", help="show it again and again until the run is closed")
    add(
        "--interval",
        metavar="SECONDS",
        type=float,
        default=2.0,
        help="how often --watch looks (default: 2)",
    )
    showing.options(parser)
    loading.contracts_option(parser)
    connection.converter_options(parser)
    connection.add_options(parser)


def _run(arguments: Namespace) -> int:
    if (arguments.history is None) == (arguments.workflow_id is None):
        arguments.parser.error("give either WORKFLOW_ID or --history FILE")
    if arguments.history is not None and (arguments.run_id or arguments.watch):
        arguments.parser.error("--run-id and --watch look at a server, --history at a file")
    if arguments.interval <= 0:
        arguments.parser.error("--interval must be greater than 0")
    read = _from_server if arguments.history is None else _read
    ledger = interrupting.run(read(arguments))
    from agboss_temporal.views.standing import standing

    return Exit.CLEAN if standing(ledger).is_clean else Exit.TROUBLE


async def _read(arguments: Namespace) -> RunLedger:
    from agboss_temporal import history
    from agboss_temporal.core.errors import HistoryError
    from agboss_temporal.history.files import parse

    name: str = arguments.history
    try:
        found = parse(sys.stdin.buffer.read()) if name == "-" else history.load(name)
        ledger = await history.ledger(
            found,
            data_converter=loading.data_converter(arguments),
            contracts=loading.contracts(arguments),
        )
    except HistoryError as err:
        raise CannotRunError(f"{name}: {err}") from err
    except OSError as err:
        raise CannotRunError(f"cannot read {name}: {err.strerror or err}") from err
    showing.write(showing.drawn(ledger, arguments))
    return ledger


async def _from_server(arguments: Namespace) -> RunLedger:
    import asyncio

    from agboss_temporal.cli.looking import Target, look

    contracts = loading.contracts(arguments)
    client = await connection.connect(arguments)
    target = Target(client, arguments.workflow_id, arguments.run_id, contracts)
    shown: RunLedger | None = None
    while True:
        known = ("", 0) if shown is None else (shown.run_id, shown.last_event_id)
        ledger = await look(target, known)
        if ledger is not None:
            shown = ledger
            put = showing.rewrite if arguments.watch else showing.write
            put(showing.drawn(ledger, arguments))
        if shown is not None and (not arguments.watch or _is_over(shown, arguments)):
            return shown
        await asyncio.sleep(arguments.interval)


def _is_over(ledger: RunLedger, arguments: Namespace) -> bool:
    """Tell whether nothing more will happen in what is watched."""
    followed = ledger.end is not None and ledger.end.next_run_id is not None
    return ledger.is_closed and (not followed or arguments.run_id is not None)


COMMAND = Command(
    name="status",
    help="show what a run did, what was undone, and what is left",
    description="Show the actions of a run, newest first, with what became of each. What is in "
    "doubt, unrecorded or could not be read stands apart.",
    configure=_configure,
    run=_run,
)
