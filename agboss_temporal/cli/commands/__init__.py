"""The commands. A new one is a module here and a line in the table."""

from __future__ import annotations

from typing import Final

from agboss_temporal.cli.command import Command
from agboss_temporal.cli.commands import plan, recover, search_attributes, status, sweep

COMMANDS: Final[tuple[Command, ...]] = (
    status.COMMAND,
    plan.COMMAND,
    recover.COMMAND,
    sweep.COMMAND,
    search_attributes.COMMAND,
)
