"""Short names for the calls that the scenario workflows make."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from tests.support import acts

ONCE: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(maximum_attempts=1),
}


async def reserve(item: str, gate: str | None = None, **options: Any) -> acts.Receipt:
    return await workflow.execute_activity(acts.reserve, args=[item, gate], **{**ONCE, **options})


async def charge(item: str, gate: str | None = None, **options: Any) -> acts.Receipt:
    return await workflow.execute_activity(acts.charge, args=[item, gate], **{**ONCE, **options})


async def ship(item: str, gate: str | None = None, **options: Any) -> str:
    return await workflow.execute_activity(acts.ship, args=[item, gate], **{**ONCE, **options})


async def refund(receipt: acts.Receipt, **options: Any) -> None:
    await workflow.execute_activity(acts.refund, receipt, **{**ONCE, **options})


async def release(receipt: acts.Receipt, **options: Any) -> None:
    await workflow.execute_activity(acts.release, receipt, **{**ONCE, **options})


async def explode(kind: str = "Boom") -> None:
    await workflow.execute_activity(acts.explode, kind, **ONCE)


async def note(what: str) -> str:
    return await workflow.execute_activity(acts.note, what, **ONCE)
