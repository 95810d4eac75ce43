"""Asking before something is done that cannot be taken back."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from agboss_temporal.cli.command import CannotRunError


def option(parser: ArgumentParser) -> None:
    """Add the option that answers yes beforehand."""
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def agreed(arguments: Namespace, question: str) -> bool:
    """Ask a question, unless ``--yes`` has answered it.

    Nothing but ``y`` or ``yes`` is a yes. The question goes to standard error, so that standard
    output stays what it is.

    Raises:
        CannotRunError: There is nobody to ask.
    """
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise CannotRunError("nobody is there to be asked: look at the plan, then give --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
