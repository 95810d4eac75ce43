"""``sweep``: recover all runs that a query finds."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from agboss_temporal.cli import asking, connection, interrupting, loading, showing
from agboss_temporal.cli.command import Command, Exit

if TYPE_CHECKING:
    from agboss_temporal.recovery import Sweep


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("query", metavar="QUERY", help="a list filter, as for temporal workflow list --query")
    add("--dry-run", action="store_true", help="show what would be done, and do nothing")
    add("--concurrency", metavar="N", type=int, default=10, help="runs at once (default: 10)")
    asking.option(parser)
    showing.options(parser, ("text", "json"))
    loading.contracts_option(parser)
    connection.converter_options(parser)
    connection.add_options(parser)


def _run(arguments: Namespace) -> int:
    if arguments.concurrency < 1:
        arguments.parser.error("--concurrency must be at least 1")
    return interrupting.run(_sweep(arguments))


async def _sweep(arguments: Namespace) -> int:
    from agboss_temporal import recovery
    from agboss_temporal.cli.recovery_documents import sweep_document

    contracts = loading.contracts(arguments)
    client = await connection.connect(arguments)

    async def swept(dry_run: bool) -> Sweep:
        with _Progress() as progress:
            return await recovery.sweep(
                client,
                arguments.query,
                contracts=contracts,
                dry_run=dry_run,
                concurrency=arguments.concurrency,
                on_progress=progress,
            )

    found = await swept(True)
    left = sum(1 for run in found.runs if not run.is_clean)
    if arguments.dry_run or not left:
        showing.write(showing.told(sweep_document(found, dry_run=True), found.runs, arguments))
        return Exit.TROUBLE if left else Exit.CLEAN
    showing.aside(sweep_document(found, dry_run=True))
    if not asking.agreed(arguments, f"Recover what can be, in {left} of {len(found.runs)} runs?"):
        return Exit.TROUBLE
    done = await swept(False)
    showing.write(showing.told(sweep_document(done, dry_run=False), done.runs, arguments))
    return Exit.CLEAN if done.is_clean else Exit.TROUBLE


class _Progress:
    """Counts runs on standard error, if somebody is looking there."""

    def __init__(self) -> None:
        self._count = 0
        self._seen = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, _: object) -> None:
        self._count += 1
        self._write(f"\r{self._count} runs")

    def __exit__(self, *_: object) -> None:
        if self._count:
            self._write("\n")

    def _write(self, text: str) -> None:
        if self._seen:
            sys.stderr.write(text)
            sys.stderr.flush()


COMMAND = Command(
    name="sweep",
    help="recover all runs that a query finds",
    description="Find closed runs, and undo what they have left open. Runs that have a newer one "
    "are left to a person. Shows what it would do and asks first.",
    configure=_configure,
    run=_run,
)
