"""How a plan reaches the workflow that executes it: payload, policy and limits."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import DataConverter

from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.undo_options import from_json, to_json

DEFAULT_PAYLOAD_LIMIT: Final = 2 * 1024 * 1024
"""How large the server lets a payload be, in bytes, if nobody changed that."""

_CODEC_HEADROOM: Final = 0.7
"""Share of the payload limit that is used where a codec may make payloads larger; base64 alone
makes them a third larger."""


def as_payload(data: bytes) -> RawValue:
    """Make bytes a value that every payload converter leaves as it is; codecs are applied."""
    return RawValue(Payload(metadata={"encoding": b"binary/plain"}, data=data))


def payload_limit(converter: DataConverter) -> int:
    """Return how many bytes a payload may have before codecs are applied."""
    if converter.external_storage is not None:
        return sys.maxsize  # What is large goes there.
    if converter.payload_codec is not None:
        return int(DEFAULT_PAYLOAD_LIMIT * _CODEC_HEADROOM)
    return DEFAULT_PAYLOAD_LIMIT


def policy_to_json(policy: CompensationPolicy) -> dict[str, Any]:
    """Write what of a policy says how undos are executed; the time of an unwind is not in it."""
    return {
        "order": policy.order,
        "max_parallel": policy.max_parallel,
        "on_exhausted": policy.on_exhausted,
        "undo_options": to_json(policy.undo_options),
    }


def policy_from_json(data: Mapping[str, Any]) -> CompensationPolicy:
    """Read a policy that `policy_to_json` wrote; ``total_timeout`` may be in it, in seconds."""
    options = dict(data)
    options["undo_options"] = from_json(options.get("undo_options", {}))
    return CompensationPolicy(**options)
