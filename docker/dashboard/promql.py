"""The queries of the dashboard, in Prometheus's language."""

from __future__ import annotations

from typing import Final

OURS: Final = "agboss_compensation_"
CHOSEN: Final = 'namespace=~"$namespace",task_queue=~"$task_queue"'
"""What every query is narrowed to."""

LEFT: Final = 'verdict=~"failed|not_run"'
"""Verdicts of undos that were to happen and did not."""


def gained(metric: str, by: str, window: str, labels: str = "") -> str:
    """Return the query for how much a counter has gained, also if it was born in the window.

    ``increase`` alone does not see the first value of a counter, and the first is all that there is
    where things go wrong rarely: each worker process counts from nothing.

    Args:
        metric: Name of the counter.
        by: The labels to sum by; may be empty.
        window: Over which time.
        labels: Further label matchers.
    """
    series = f"{metric}{{{','.join(filter(None, (CHOSEN, labels)))}}}"
    summed = f"sum by ({by})" if by else "sum"
    return (
        f"{summed}((last_over_time({series}[{window}]) unless {series} offset {window})"
        f" or increase({series}[{window}]))"
    )


def less(total: str, *parts: str) -> str:
    """Return the query for a total less its parts; a part without data is nothing."""
    return f"{total} " + " ".join(f"- ({part} or 0 * {total})" for part in parts)


def still_open(window: str) -> str:
    """Return the query for how many effects of each action an unwind would undo now.

    What was in doubt may be undone, or sealed, and was never opened. Committers may be in doubt as
    well; as nothing opens them, they are left out.
    """
    counted = {
        state: gained(OURS + "actions_total", "action", window, f'state="{state}"')
        for state in ("opened", "in_doubt", "sealed")
    }
    opened = counted["opened"]
    total = f"({opened} + ({counted['in_doubt']} or 0 * {opened}))"
    judged = gained(OURS + "undos_total", "action", window)
    return f"clamp_min({less(total, counted['sealed'], judged)}, 0)"


def quantile(share: float, metric: str, by: str, window: str) -> str:
    """Return the query for a quantile of a histogram."""
    return f"histogram_quantile({share}, {gained(metric + '_bucket', f'le,{by}', window)})"
