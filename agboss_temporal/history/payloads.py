"""Payloads without codec, where the ledger itself has to read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.common import RawValue
from temporalio.converter import DataConverter

from agboss_temporal.core import carry, wire
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.core.recovery import RECOVERY_TYPE
from agboss_temporal.core.report import FAILURE_TYPE
from agboss_temporal.core.sealing import SEALED_UNIT

_JSON: Final = b"json/plain"
_BINARY: Final = b"binary/plain"


async def decoded(payloads: Sequence[Payload], converter: DataConverter) -> list[Payload]:
    """Take codecs and external storage off payloads; the payload converter leaves them alone.

    Args:
        payloads: Payloads as a history has them.
        converter: The client's converter. If its codec depends on the context of a call, give it
            that context first: ``converter.with_context(...)``.
    """
    if not payloads:
        return []
    values = await converter.decode(payloads, [RawValue] * len(payloads))
    return [value.payload for value in values]


class Plain:
    """The payloads of a history that had to be decoded, by the payload in the event.

    Args:
        found: Decoded payloads, or why a payload could not be decoded, by its serialized form.
        has_converter: Whether there was anything to decode them with.
    """

    def __init__(self, found: Mapping[bytes, Payload | str], *, has_converter: bool) -> None:
        self._found = found
        self._has_converter = has_converter

    @classmethod
    async def of(
        cls,
        events: Iterable[HistoryEvent],
        converter: DataConverter | None,
        table: ContractTable | None,
    ) -> Self:
        """Decode what the ledger reads, and nothing else."""
        if converter is None:
            return cls({}, has_converter=False)
        wanted = {p.SerializeToString(): p for p in _wanted(events, table)}
        return cls(await _each_decoded(wanted, converter), has_converter=True)

    def of_payload(self, payload: Payload) -> Payload:
        """Return a payload without codec, as far as that was possible."""
        found = self._found.get(payload.SerializeToString())
        return found if isinstance(found, Payload) else payload

    def json(self, payload: Payload) -> tuple[bytes, str | None]:
        """Return the JSON that a payload holds, and else why it cannot be read."""
        return self._data(payload, _JSON)

    def binary(self, payload: Payload) -> tuple[bytes, str | None]:
        """Return the bytes that a payload holds, and else why they cannot be read."""
        return self._data(payload, _BINARY)

    def _data(self, payload: Payload, wanted: bytes) -> tuple[bytes, str | None]:
        if payload.metadata.get("encoding") == wanted:
            return payload.data, None
        found = self._found.get(payload.SerializeToString())
        if isinstance(found, str):
            return b"", f"it could not be decoded ({found})"
        if found is not None and found.metadata.get("encoding") == wanted:
            return found.data, None
        encoding = payload.metadata.get("encoding", b"").decode(errors="replace") or "nothing"
        hint = "" if self._has_converter else "; give the client's data_converter"
        return b"", f"its encoding is {encoding}{hint}"


async def _each_decoded(
    wanted: Mapping[bytes, Payload], converter: DataConverter
) -> dict[bytes, Payload | str]:
    """Decode all at once; if that fails, one by one, so that each says for itself why."""
    try:
        values = await decoded(list(wanted.values()), converter)
        if len(values) == len(wanted):
            return dict(zip(wanted, values, strict=True))
    except Exception:
        pass
    found: dict[bytes, Payload | str] = {}
    for form, payload in wanted.items():
        try:
            [found[form]] = await decoded([payload], converter)
        except Exception as err:
            found[form] = type(err).__name__
    return found


def _wanted(events: Iterable[HistoryEvent], table: ContractTable | None) -> Iterator[Payload]:
    judged: set[int] = set()
    recovers = False
    for event in events:
        kind = event.WhichOneof("attributes")
        if kind == "activity_task_scheduled_event_attributes":
            scheduled = event.activity_task_scheduled_event_attributes
            header = scheduled.header.fields.get(wire.HEADER)
            yield from _encoded([header])
            if table is not None and _is_judged(scheduled.activity_type.name, table):
                judged.add(event.event_id)
                yield from scheduled.input.payloads
        elif kind == "activity_task_completed_event_attributes":
            completed = event.activity_task_completed_event_attributes
            if completed.scheduled_event_id in judged:
                yield from completed.result.payloads
        elif kind is not None:
            recovers = recovers or is_recovery(event)
            yield from _encoded(_of_rare_event(event, kind, recovers=recovers))


def is_recovery(event: HistoryEvent) -> bool:
    """Tell whether the event starts a recovery workflow, whose input is a plan."""
    started = event.workflow_execution_started_event_attributes
    return bool(started.workflow_type.name == RECOVERY_TYPE)


def _of_rare_event(event: HistoryEvent, kind: str, *, recovers: bool) -> Iterable[Payload | None]:
    attributes: Any = getattr(event, kind)
    if kind == "start_child_workflow_execution_initiated_event_attributes":
        plan = attributes.workflow_type.name == RECOVERY_TYPE
        given = attributes.input.payloads if plan else ()
        return [attributes.header.fields.get(wire.HEADER), *given]
    if kind == "child_workflow_execution_completed_event_attributes":
        plan = attributes.workflow_type.name == RECOVERY_TYPE
        return attributes.result.payloads if plan else ()
    if kind == "workflow_execution_started_event_attributes":
        given = attributes.input.payloads if recovers else ()
        return [attributes.memo.fields.get(carry.MEMO), *given]
    if kind == "workflow_execution_completed_event_attributes":
        return attributes.result.payloads if recovers else ()
    if kind == "workflow_properties_modified_event_attributes":
        return [attributes.upserted_memo.fields.get(SEALED_UNIT)]
    if kind == "workflow_execution_failed_event_attributes":
        failure = attributes.failure.application_failure_info
        return failure.details.payloads if failure.type == FAILURE_TYPE else ()
    return ()


def _encoded(payloads: Iterable[Payload | None]) -> Iterator[Payload]:
    for payload in payloads:
        if payload is not None and payload.metadata.get("encoding") not in (_JSON, _BINARY):
            yield payload


def _is_judged(name: str, table: ContractTable) -> bool:
    return name in table.undos or table.get("activity", name) is not None
