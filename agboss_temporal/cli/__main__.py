"""``python -m agboss_temporal.cli``."""

import sys

from agboss_temporal.cli import main

sys.exit(main())
