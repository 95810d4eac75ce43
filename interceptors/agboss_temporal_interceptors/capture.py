"""Seeing the recorded payload of a result while the SDK decodes it.

A `Capture` takes the place of the result type of one call. It rests on the public hook
``transfer_type_convertible``: the SDK decodes to a raw value, hands it over while it applies the
completion, and gets the decoded object back. So the payload is seen in history order, with no
wrapper around the handle, and also when the handle was cancelled in the same workflow task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import (
    PayloadConverter,
    TransferTypeConverter,
    transfer_type_convertible,
)


class _CaptureConverter(TransferTypeConverter["Capture", RawValue]):
    transfer_type = RawValue

    def to_transfer_type(self, value: Capture) -> RawValue:
        raise TypeError("a capture is only ever decoded to")

    def from_transfer_type(self, value: RawValue, type_hint: Any) -> Any:
        return type_hint.take(value)


@transfer_type_convertible(_CaptureConverter)
class Capture:
    """Stands where the SDK expects the type of a result; one for each call.

    Args:
        wanted: The type that the caller asked for.
        converter: The workflow's payload converter.
        on_payload: Called with the recorded payload, before it is decoded.
    """

    __slots__ = ("_converter", "_on_payload", "_wanted")

    def __init__(
        self,
        wanted: Any,
        converter: PayloadConverter,
        on_payload: Callable[[Payload], None],
    ) -> None:
        self._wanted = wanted
        self._converter = converter
        self._on_payload = on_payload

    def take(self, value: RawValue) -> Any:
        """Hand over the payload and decode it as the caller asked."""
        self._on_payload(value.payload)
        if self._wanted is RawValue:
            return value
        hints = [self._wanted] if self._wanted else None
        return self._converter.from_payloads([value.payload], hints)[0]


def supported_by(converter: PayloadConverter) -> bool:
    """Try whether a payload converter hands raw values over as its contract says."""
    seen: list[Payload] = []
    [payload] = converter.to_payloads(["probe"])
    capture: Any = Capture(None, converter, seen.append)
    try:
        converter.from_payloads([payload], [capture])
    except Exception:
        return False
    return seen == [payload]
