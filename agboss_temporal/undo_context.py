"""What an undo with ``undo_input="context"`` is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args, overload

import temporalio.activity
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    PayloadConverter,
    TransferTypeConverter,
    transfer_type_convertible,
)

from agboss_temporal.core import reading
from agboss_temporal.core.errors import RecordError

T = TypeVar("T")

Outcome = Literal["completed", "unknown"]

_text: Final = reading.of(str)
_maybe: Final = reading.of(str, type(None))


@dataclass(frozen=True, slots=True)
class UndoReason:
    """Why an unwind was started.

    Attributes:
        trigger: What started it.
        error_type: Type of the error, as clients see it.
        message: The error's own message.
    """

    trigger: str
    error_type: str | None = None
    message: str | None = None


class _ContextConverter(TransferTypeConverter["UndoContext", "dict[str, Any]"]):
    transfer_type: type[dict[str, Any]] | None = dict

    def to_transfer_type(self, value: UndoContext) -> dict[str, Any]:
        return value.to_dict()

    def from_transfer_type(
        self, value: dict[str, Any], type_hint: type[UndoContext]
    ) -> UndoContext:
        return UndoContext.from_dict(value)


@transfer_type_convertible(_ContextConverter)
class UndoContext:
    """All that is known about the execution that is to be undone.

    On the wire it is a JSON object that any language can read: ``version``, ``key``, ``action``,
    ``outcome``, ``reason`` (``trigger``, ``error_type``, ``message``), ``args`` (a list) and
    ``result`` (absent if there is none), the last two as payloads in protobuf's JSON form, with
    base64 metadata and data.

    Attributes:
        key: Key of the entry.
        action: Registered name of the action.
        outcome: ``completed``, or ``unknown`` when nobody knows whether it took effect; then the
            undo must do nothing where nothing was done.
        reason: Why it is undone.
    """

    def __init__(
        self,
        *,
        key: str,
        action: str,
        outcome: Outcome,
        reason: UndoReason,
        args: Sequence[Payload] = (),
        result: Payload | None = None,
    ) -> None:
        self.key = key
        self.action = action
        self.outcome: Outcome = outcome
        self.reason = reason
        self._args = tuple(args)
        self._result = result

    @property
    def has_result(self) -> bool:
        """Whether a result was recorded."""
        return self._result is not None

    @overload
    def result(self, kind: type[T]) -> T: ...
    @overload
    def result(self, kind: None = None) -> Any: ...
    def result(self, kind: type[Any] | None = None) -> Any:
        """Decode the recorded result with the activity's payload converter.

        Args:
            kind: The type to decode to; without it, what the converter makes of the payload.

        Returns:
            The result, ``None`` if none was recorded.
        """
        if self._result is None:
            return None
        hints = None if kind is None else [kind]
        return _converter().from_payloads([self._result], hints)[0]

    def args(self, *kinds: type[Any]) -> tuple[Any, ...]:
        """Decode the recorded arguments with the activity's payload converter.

        Args:
            kinds: The types to decode to, one for each argument; without them, what the converter
                makes of the payloads.

        Returns:
            The arguments, in order.
        """
        if not self._args:
            return ()
        return tuple(_converter().from_payloads(self._args, list(kinds) or None))

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        found: dict[str, Any] = {
            "version": 1,
            "key": self.key,
            "action": self.action,
            "outcome": self.outcome,
            "reason": {
                "trigger": self.reason.trigger,
                "error_type": self.reason.error_type,
                "message": self.reason.message,
            },
            "args": [MessageToDict(p) for p in self._args],
        }
        if self._result is not None:
            found["result"] = MessageToDict(self._result)
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> UndoContext:
        """Read the wire form.

        Raises:
            RecordError: It is not a context, or of a version that this code cannot read.
        """
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != 1:
            raise RecordError(f"undo context of version {version!r}; this code reads 1")
        try:
            return cls(**_fields(data))
        except (KeyError, TypeError, ValueError, ParseError) as err:
            raise RecordError(f"not an undo context: {type(err).__name__}: {err}") from err


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    reason = reading.of(Mapping)(data.get("reason") or {})
    outcome = data["outcome"]
    if outcome not in get_args(Outcome):
        raise ValueError(f"outcome {outcome!r}")
    result = data.get("result")
    return {
        "key": _text(data["key"]),
        "action": _text(data["action"]),
        "outcome": outcome,
        "reason": UndoReason(
            trigger=_text(reason.get("trigger", "")),
            error_type=_maybe(reason.get("error_type")),
            message=_maybe(reason.get("message")),
        ),
        "args": [_payload(p) for p in reading.of(list, tuple)(data.get("args", ()))],
        "result": None if result is None else _payload(result),
    }


def _payload(data: Any) -> Payload:
    return ParseDict(reading.of(Mapping)(data), Payload())


def wire_size(args: Sequence[Payload], result: Payload | None) -> int:
    """Estimate the size in bytes of a context that holds these: base64 adds a third."""
    held = sum(payload.ByteSize() for payload in args)
    if result is not None:
        held += result.ByteSize()
    return held * 4 // 3


def _converter() -> PayloadConverter:
    if temporalio.activity.in_activity():
        return temporalio.activity.payload_converter()
    return PayloadConverter.default
