"""The recorded payload is seen as it stands in history, and the caller gets what it asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, DefaultPayloadConverter, PayloadConverter

from agboss_temporal_interceptors.capture import Capture, supported_by


@dataclass
class Receipt:
    id: str


def decode(value: Any, wanted: Any) -> tuple[Any, list[Payload], Payload]:
    converter = DataConverter.default.payload_converter
    [payload] = converter.to_payloads([value])
    seen: list[Payload] = []
    hints: list[Any] = [Capture(wanted, converter, seen.append)]
    [result] = converter.from_payloads([payload], hints)
    return result, seen, payload


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        (Receipt("r-1"), Receipt, Receipt("r-1")),
        (Receipt("r-1"), None, {"id": "r-1"}),
        (None, type(None), None),
        (None, Receipt | None, None),
        (b"bytes", bytes, b"bytes"),
        ([Receipt("r-1")], list[Receipt], [Receipt("r-1")]),
    ],
)
def test_the_payload_is_handed_over_and_the_object_is_what_was_asked_for(
    value: Any, wanted: Any, expected: Any
) -> None:
    result, seen, payload = decode(value, wanted)
    assert result == expected
    assert seen == [payload]


def test_a_caller_that_asks_for_the_raw_value_gets_it() -> None:
    result, seen, payload = decode("shoe", RawValue)
    assert isinstance(result, RawValue)
    assert result.payload == payload
    assert seen == [payload]


def test_a_result_that_cannot_be_decoded_has_been_seen_before() -> None:
    converter = DataConverter.default.payload_converter
    [payload] = converter.to_payloads(["not a number"])
    seen: list[Payload] = []
    hints: list[Any] = [Capture(int, converter, seen.append)]
    with pytest.raises(Exception, match="int"):
        converter.from_payloads([payload], hints)
    assert seen == [payload]


class Deaf(DefaultPayloadConverter):
    def from_payloads(self, payloads: Any, type_hints: Any = None) -> list[Any]:
        return super().from_payloads(payloads, None)


@pytest.mark.parametrize(
    ("converter", "supported"),
    [
        (DataConverter.default.payload_converter, True),
        (pydantic_data_converter.payload_converter, True),
        (DataConverter(payload_converter_class=Deaf).payload_converter, False),
        (DefaultPayloadConverter(), False),
    ],
    ids=["default", "pydantic", "deaf", "bare"],
)
def test_a_converter_proves_itself(converter: PayloadConverter, supported: bool) -> None:
    assert supported_by(converter) is supported
