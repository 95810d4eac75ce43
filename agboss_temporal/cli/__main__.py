"""``python -m agboss_temporal.cli``."""

from agboss_temporal.cli import main

main()
