"""The errors that the core raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agboss_temporal.core.contract import Fault


class AgbossError(Exception):
    """Base of the errors that speak to a developer and never cross the wire."""


class ContractError(AgbossError):
    """Declarations are wrong: raised at decoration or when a worker is constructed.

    Attributes:
        faults: Every fault found, each with its code, its action and its place.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        count = len(self.faults)
        head = f"{count} fault{'s' if count != 1 else ''} in the compensation declarations:"
        super().__init__("\n  ".join([head, *map(str, self.faults)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.faults,)


class IllegalTransitionError(AgbossError):
    """The ledger's table has no such move. Nothing was changed."""

    def __init__(self, key: str, state: str, step: str) -> None:
        self.key = key
        self.state = state
        self.step = step
        super().__init__(f"entry {key} is {state!r}: it cannot {step!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.key, self.state, self.step)


class RecordError(AgbossError):
    """A record (header, report) cannot be read: unknown version, wrong shape, not ours."""


class RecordVersionError(RecordError):
    """A record is of a version that this code cannot read: a newer one has written it."""


class HistoryError(AgbossError):
    """Events cannot be the history of a run.

    Attributes:
        event_id: The event that cannot be; 0 if it is the history as a whole.
    """

    def __init__(self, event_id: int, problem: str) -> None:
        self.event_id = event_id
        self.problem = problem
        super().__init__(f"event {event_id}: {problem}" if event_id else problem)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.event_id, self.problem)


class RecoveryRefused(AgbossError):
    """A run is not recovered, or cannot be. Nothing was started.

    Attributes:
        why: ``not-found``, ``open``, ``finished``, ``continued-as-new``, ``recovery``,
            ``nothing-open``, ``newer-run``, ``unreadable``; of a reset ``unsafe-reset`` and
            ``no-reset-point``.
    """

    def __init__(self, why: str, message: str) -> None:
        self.why = why
        self.message = message
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.why, self.message)
