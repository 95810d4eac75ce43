"""What a command is, and how one fails."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes."""

    CLEAN = 0
    TROUBLE = 1
    COULD_NOT_RUN = 2
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class CannotRunError(Exception):
    """A command cannot do what it was asked for. Its text is all that the user sees."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the command line.

    Attributes:
        name: Its name.
        help: What it does, in one line.
        description: What it does.
        configure: Adds its arguments to its parser.
        run: Runs it; returns the exit code. It imports what it needs only here.
    """

    name: str
    help: str
    description: str
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
