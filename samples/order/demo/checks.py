"""What must be true of the world, and of the run, at the end of a story."""

from __future__ import annotations

from agboss_temporal import CompensationReport
from samples.order.books import Snapshot
from samples.order.models import Order


def of_run(ending: str, wanted: str, report: CompensationReport) -> list[str]:
    """Find what is wrong with how a run closed.

    Args:
        ending: The status that it closed with.
        wanted: The status that it must close with.
        report: What the library says of it.
    """
    found = []
    if ending != wanted:
        found.append(f"the run is {ending or 'open'}, not {wanted}")
    # A run that is terminated in the middle of its unwind says that it is in the middle.
    status = {"COMPLETED": "none", "TERMINATED": "running"}.get(wanted, "completed")
    if report.status != status:
        found.append(f"compensation is {report.status}, not {status}")
    return found


def of_world(after: Snapshot, wanted: Snapshot) -> list[str]:
    """Find what is not in the world as it must be."""
    return [
        f"{what} is {there}, not {getattr(wanted, what)}"
        for what, there in after.model_dump().items()
        if there != getattr(wanted, what)
    ]


def of_keys(effects_by_key: dict[str, int]) -> list[str]:
    """Find idempotency keys that did not have exactly one effect."""
    return [f"key {key}: {count} effects" for key, count in effects_by_key.items() if count != 1]


def sold(before: Snapshot, order: Order) -> Snapshot:
    """Return the world as it must be after an order that went through."""
    return Snapshot(
        stock={**before.stock, order.sku: before.stock[order.sku] - order.quantity},
        taken_cents=before.taken_cents + order.cents,
        shipments=before.shipments + 1,
    )
