"""Payloads without codec, where the ledger itself has to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.converter import DataConverter

from agboss_temporal.core.contract import ContractTable


class Plain:
    """The payloads of a history that had to be decoded."""

    @classmethod
    async def of(
        cls,
        events: Sequence[HistoryEvent],
        converter: DataConverter | None,
        *,
        judged: ContractTable | None,
    ) -> Self:
        """Decode what the ledger needs."""
        return cls()

    def header(self, event_id: int, payload: Payload) -> tuple[bytes | None, str | None]:
        """Return the record in a header, or why it cannot be read."""
        if payload.metadata.get("encoding") == b"json/plain":
            return payload.data, None
        return None, "it is encoded"
