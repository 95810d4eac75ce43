"""The command line: ``agboss-temporal``, or ``python -m agboss_temporal.cli``.

Exit codes: 0 clean; 1 something is open, in doubt or failed; 2 it could not be found out, or the
command was wrong; 130 interrupted. Nothing here imports temporalio before a command runs, so that
help and mistakes in the arguments are answered at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from agboss_temporal.cli.parser import build
from agboss_temporal.cli.running import guarded

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Its arguments; those of the process by default.

    Returns:
        The exit code.
    """
    arguments = build().parse_args(argv)
    return guarded(arguments.run, arguments)
