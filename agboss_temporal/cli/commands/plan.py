"""``plan``: what a recovery would do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from agboss_temporal.cli import connection, interrupting, loading, showing
from agboss_temporal.cli.command import Command, Exit


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("workflow_id", metavar="WORKFLOW_ID", help="the workflow")
    parser.add_argument("-r", "--run-id", metavar="RUN_ID", help="the run (default: the newest)")
    showing.options(parser, ("text", "json"))
    loading.contracts_option(parser)
    connection.converter_options(parser)
    connection.add_options(parser)


def _run(arguments: Namespace) -> int:
    return interrupting.run(_plan(arguments))


async def _plan(arguments: Namespace) -> int:
    from agboss_temporal import recovery
    from agboss_temporal.cli.recovery_documents import plan_document

    contracts = loading.contracts(arguments)
    client = await connection.connect(arguments)
    plan = await recovery.plan(client, arguments.workflow_id, arguments.run_id, contracts=contracts)
    showing.write(showing.told(plan_document(plan), plan, arguments))
    return Exit.CLEAN if plan.is_clean else Exit.TROUBLE


COMMAND = Command(
    name="plan",
    help="show what a recovery of a closed run would undo",
    description="Show what is still open in a closed run and its children, and the undos that "
    "`recover` would run. Changes nothing.",
    configure=_configure,
    run=_run,
)
