"""The key that an activity gives to the outside world, so that a repeat does nothing more."""

from __future__ import annotations

import hashlib
import uuid
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from agboss_temporal.exceptions import IdempotencyKeyError

Role = Literal["action", "undo", "committer"]


@dataclass(frozen=True, slots=True)
class ActivityIdentity:
    """Who an activity execution is.

    Attributes:
        namespace: Namespace of the workflow.
        workflow_id: Id of the workflow whose history holds the entry.
        key: Key of the entry.
        role: What the call is to that entry.
        fault: Why the identity cannot be read, if it cannot.
    """

    namespace: str = ""
    workflow_id: str = ""
    key: str = ""
    role: Role = "action"
    fault: str | None = None


current: ContextVar[ActivityIdentity] = ContextVar("agboss_temporal_identity")
"""Set by the activity interceptor around every activity execution."""


def idempotency_key(part: str = "", *, role: Role | None = None) -> str:
    """Return the key to send along with the effect of this activity.

    The same for every retry, replay, takeover and recovery of this call; different for every
    other call. A reset gives what it executes again a new key.

    Args:
        part: Tells several effects of one activity apart.
        role: Whose key to return, by default this call's own. An undo passes ``"action"`` to get
            the key that its action used, even if the action never returned.

    Returns:
        A UUID in its usual text form, derived by SHA-256 from the namespace, the workflow id, the
        entry's key, the role and the part.

    Raises:
        IdempotencyKeyError: This is not an activity that a contract names, it runs in a process
            pool, or its header cannot be read.
    """
    identity = current.get(None)
    if identity is None:
        raise IdempotencyKeyError(
            "idempotency_key() works inside an activity that a contract names, on a worker with "
            "CompensationPlugin; a process pool does not carry it, so take the key before"
        )
    if identity.fault is not None:
        raise IdempotencyKeyError(identity.fault)
    source = (
        identity.namespace,
        identity.workflow_id,
        identity.key,
        role or identity.role,
        part,
    )
    digest = bytearray(hashlib.sha256("\0".join(source).encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80  # version 8 of RFC 9562: the application's own derivation
    digest[8] = digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))
