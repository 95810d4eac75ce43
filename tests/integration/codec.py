"""Data converters that the tests run under: payload converters, each also with encryption."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cryptography.fernet import Fernet
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    ExternalStorage,
    PayloadCodec,
    SerializationContext,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    WithSerializationContext,
)


class FernetCodec(PayloadCodec):
    """Encrypts whole payloads."""

    def __init__(self) -> None:
        self._fernet = Fernet(Fernet.generate_key())

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"binary/encrypted"},
                data=self._fernet.encrypt(p.SerializeToString()),
            )
            for p in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(self._fernet.decrypt(p.data))
            if p.metadata.get("encoding") == b"binary/encrypted"
            else p
            for p in payloads
        ]


class ContextCodec(PayloadCodec, WithSerializationContext):
    """Gives payloads back only where they were made for."""

    def __init__(self, context: str = "") -> None:
        self._context = context

    def with_context(self, context: SerializationContext) -> ContextCodec:
        if isinstance(context, ActivitySerializationContext):
            # The SDK does not know the activity's id yet when it writes the arguments.
            context = dataclasses.replace(context, activity_id=None)
        return ContextCodec(repr(context))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"binary/bound", "for": self._context.encode()},
                data=payload.SerializeToString(),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._opened(payload) for payload in payloads]

    def _opened(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != b"binary/bound":
            return payload
        made_for = payload.metadata["for"].decode()
        assert made_for == self._context, f"made for {made_for}, opened for {self._context}"
        return Payload.FromString(payload.data)


def _encrypted(converter: DataConverter) -> DataConverter:
    return dataclasses.replace(
        converter,
        payload_codec=FernetCodec(),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )


CONVERTERS: Final[Mapping[str, DataConverter]] = {
    "default": DataConverter.default,
    "pydantic": pydantic_data_converter,
    "default-encrypted": _encrypted(DataConverter.default),
    "pydantic-encrypted": _encrypted(pydantic_data_converter),
}


class Shelf(StorageDriver):
    """Keeps large payloads in this process."""

    def __init__(self) -> None:
        self._kept: list[Payload] = []

    def name(self) -> str:
        return "shelf"

    async def store(
        self, context: StorageDriverStoreContext, payloads: Sequence[Payload]
    ) -> list[StorageDriverClaim]:
        claims = []
        for payload in payloads:
            claims.append(StorageDriverClaim({"place": str(len(self._kept))}))
            self._kept.append(Payload.FromString(payload.SerializeToString()))
        return claims

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        return [self._kept[int(claim.claim_data["place"])] for claim in claims]


def with_shelf() -> DataConverter:
    """Return a data converter that keeps large payloads out of histories."""
    return dataclasses.replace(
        DataConverter.default, external_storage=ExternalStorage(drivers=[Shelf()])
    )


async def decoded(converter: DataConverter, payloads: Iterable[Payload]) -> list[bytes]:
    """Return payloads as the payload converter wrote them, to be compared byte for byte."""
    found = list(payloads)
    if converter.payload_codec is not None:
        found = await converter.payload_codec.decode(found)
    return [p.SerializeToString(deterministic=True) for p in found]
