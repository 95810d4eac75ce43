"""The command line: ``agboss-temporal``, or ``python -m agboss_temporal.cli``.

Exit codes: 0 clean; 1 something is open, in doubt or failed; 2 it could not be found out, or the
command was wrong; 130 interrupted. Nothing here imports temporalio before a command runs, so that
help and mistakes in the arguments are answered at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import _exit as end_process
from typing import NoReturn

from agboss_temporal.cli.parser import build
from agboss_temporal.cli.running import guarded

__all__ = ["execute", "main"]


def main() -> NoReturn:
    """Run the command of this process, and end the process with its exit code.

    Once a client was made, the interpreter is not taken down: threads of the SDK's core may still
    want it, and then the process aborts with an exit code of its own.
    """
    code = execute(sys.argv[1:])
    if "temporalio" not in sys.modules:
        sys.exit(code)
    sys.stderr.flush()
    end_process(code)


def execute(argv: Sequence[str]) -> int:
    """Run a command.

    Args:
        argv: Its arguments.

    Returns:
        The exit code. All that it has to say was written.

    Raises:
        SystemExit: The arguments are wrong, or ask for help.
    """
    arguments = build().parse_args(argv)
    return guarded(arguments.run, arguments)
