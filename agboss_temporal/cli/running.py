"""Runs a command so that whatever goes wrong is one line, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable

from agboss_temporal.cli.command import CannotRunError, Exit
from agboss_temporal.views.printable import visible


def guarded(run: Callable[[Namespace], int], arguments: Namespace) -> int:
    """Run a command; what it raises becomes a line on standard error."""
    _make_streams_safe()
    try:
        code = run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing may be flushed there at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED
    except Exception as err:
        if arguments.debug:
            traceback.print_exc()
        told = visible(_told(err), 2000)
        sys.stderr.write(f"agboss-temporal: {told}\n")
        return Exit.COULD_NOT_RUN
    return code


def _told(err: Exception) -> str:
    """Say what went wrong. Only errors that speak to a user are taken by their word."""
    if isinstance(err, CannotRunError):
        return str(err)
    from temporalio.service import RPCError

    from agboss_temporal.core.errors import AgbossError

    if isinstance(err, AgbossError):
        return str(err)
    if isinstance(err, RPCError):
        return f"the server answered {err.status.name}: {err.message}"
    if isinstance(err, OSError):
        return str(err)
    return f"{type(err).__name__}: {err} (--debug shows where)"


def _make_streams_safe() -> None:
    """Write what an encoding does not have as escapes rather than to fail."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
