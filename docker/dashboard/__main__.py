"""Writes the dashboard: ``python -m docker.dashboard [--check]``, at the root of the repository.

It is not edited in Grafana: change `board` and run this.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from docker.dashboard.board import build

TARGET: Final = Path(__file__).parents[1] / "grafana" / "dashboards" / "compensation.json"


def main() -> None:
    """Write the dashboard, or say whether what is there is what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it differs")
    made = build()
    if parser.parse_args().check:
        if TARGET.read_text() != made:
            sys.exit(f"{TARGET} is not what python -m docker.dashboard writes: run it")
        return
    TARGET.write_text(made)


if __name__ == "__main__":
    main()
