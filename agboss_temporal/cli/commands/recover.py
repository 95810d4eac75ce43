"""``recover``: undo what a closed run has left open."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from agboss_temporal.cli import asking, connection, interrupting, loading, showing
from agboss_temporal.cli.command import CannotRunError, Command, Exit

if TYPE_CHECKING:
    from agboss_temporal.recovery import Plan


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("workflow_id", metavar="WORKFLOW_ID", help="the workflow")
    add("-r", "--run-id", metavar="RUN_ID", help="the run (default: the newest)")
    asking.option(parser)
    add(
        "--on-newer-run",
        action="store_true",
        help="also if there is a newer run of the same id; --yes alone does not mean that",
    )
    add("--no-wait", action="store_true", help="start the recovery, do not wait for its end")
    add("--task-queue", metavar="QUEUE", help="where the recovery runs (default: the run's own)")
    showing.options(parser, ("text", "json"))
    loading.contracts_option(parser)
    connection.converter_options(parser)
    connection.add_options(parser)


def _run(arguments: Namespace) -> int:
    return interrupting.run(_recover(arguments))


async def _recover(arguments: Namespace) -> int:
    from agboss_temporal import recovery
    from agboss_temporal.cli.recovery_documents import plan_document, recovery_document

    contracts = loading.contracts(arguments)
    client = await connection.connect(arguments)
    plan = await recovery.plan(client, arguments.workflow_id, arguments.run_id, contracts=contracts)
    if not (plan.undos or plan.under_way):
        showing.write(showing.told(plan_document(plan), plan, arguments))
        return Exit.CLEAN if plan.is_clean else Exit.TROUBLE
    showing.aside(plan_document(plan))
    if plan.undos and not _agreed(plan, arguments):
        return Exit.TROUBLE
    done = await recovery.recover(
        client,
        plan.workflow_id,
        plan.run_id,
        contracts=contracts,
        on_newer_run=plan.newer_run_id is not None,
        wait=not arguments.no_wait,
        task_queue=arguments.task_queue,
    )
    showing.write(showing.told(recovery_document(done), done, arguments))
    started = arguments.no_wait and done.status == "running" and not done.left
    return Exit.CLEAN if done.is_clean or started else Exit.TROUBLE


def _agreed(plan: Plan, arguments: Namespace) -> bool:
    """Ask for what is to be done; a newer run needs a word of its own."""
    if plan.newer_run_id is not None and not arguments.on_newer_run:
        if arguments.yes:
            raise CannotRunError(
                f"run {plan.newer_run_id} of the same id is newer and may build on the same "
                "effects: look at it, then give --on-newer-run"
            )
        if not asking.agreed(arguments, "There is a newer run. Undo all the same?"):
            return False
    return asking.agreed(arguments, f"Run the undos of {plan.workflow_id}?")


COMMAND = Command(
    name="recover",
    help="undo what a closed run has left open",
    description="Run the undos of what is still open in a closed run and its children. Shows the "
    "plan and asks first. Doing it again does nothing more.",
    configure=_configure,
    run=_run,
)
