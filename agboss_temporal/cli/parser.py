"""The parser of all arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from agboss_temporal.cli.command import Command
from agboss_temporal.cli.commands import COMMANDS

_EPILOG = """\
Exit codes: 0 clean, 1 something is open, in doubt or failed, 2 could not run, 130 interrupted.
"""


class _Version(argparse.Action):
    """Prints the version, which takes a while to find out."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"agboss-temporal {version('agboss-temporal')}\n")
        parser.exit()


def build() -> argparse.ArgumentParser:
    """Build the parser."""
    parser = argparse.ArgumentParser(
        prog="agboss-temporal",
        description="Look at, and recover, what Temporal workflows did and did not undo.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        _add(commands, command)
    return parser


def _add(commands: Any, command: Command) -> None:
    parser = commands.add_parser(
        command.name,
        help=command.help,
        description=command.description,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    command.configure(parser)
    parser.add_argument(
        "--debug", action="store_true", help="show the traceback of what went wrong"
    )
    parser.set_defaults(run=command.run, parser=parser)
