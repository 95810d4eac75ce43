"""The key that an activity gives to the outside world, so that a repeat does nothing more."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
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
        undoes_nothing: Whether it is an undo of nothing known: ``key`` is its own, not an action's.
    """

    namespace: str = ""
    workflow_id: str = ""
    key: str = ""
    role: Role = "action"
    fault: str | None = None
    undoes_nothing: bool = False


@dataclass(frozen=True, slots=True)
class IdentitySource:
    """Where the identity of an execution comes from; most activities never ask for it.

    Attributes:
        read: Finds the identity.
        process: The process that runs the execution.
    """

    read: Callable[[], ActivityIdentity]
    process: int = field(default_factory=os.getpid)


current: ContextVar[IdentitySource] = ContextVar("agboss_temporal_identity")
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
            pool, its header cannot be read, or it undoes no known action and is asked for the key
            of one.
    """
    identity = _known_identity()
    wanted = role or identity.role
    if identity.undoes_nothing and wanted == "action":
        raise IdempotencyKeyError(
            "this undo was called for something that no entry of the run stands for, so there is "
            "no action whose key it could have; use its own key, or pass the undo what the action "
            "returned"
        )
    source = (identity.namespace, identity.workflow_id, identity.key, wanted, part)
    digest = bytearray(hashlib.sha256(b"".join(map(_framed, source))).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80  # version 8 of RFC 9562: the application's own derivation
    digest[8] = digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))


def _known_identity() -> ActivityIdentity:
    source = current.get(None)
    # A forked process has the source of whichever activity made the pool start it.
    if source is None or source.process != os.getpid():
        raise IdempotencyKeyError(
            "idempotency_key() works inside an activity that a contract names, on a worker with "
            "CompensationPlugin; a process pool does not carry it, so take the key before"
        )
    identity = source.read()
    if identity.fault is not None:
        raise IdempotencyKeyError(identity.fault)
    return identity


def _framed(text: str) -> bytes:
    """Put a text's length before it, so that no two sources run into the same bytes."""
    data = text.encode()
    return f"{len(data)}:".encode() + data
