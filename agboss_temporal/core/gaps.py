"""What a history lacks: records that cannot be read, and calls that have none."""

from __future__ import annotations

from collections.abc import Collection

from agboss_temporal.core.contract import Kind
from agboss_temporal.core.run_ledger import Unreadable, UnrecordedCall


class Gaps:
    """What is known to be missing from the records of a run."""

    def __init__(self) -> None:
        self._unreadable: list[Unreadable] = []
        self._unrecorded: list[UnrecordedCall] = []
        self._unmarked = False

    def unreadable(self, event_id: int, what: str, reason: str) -> None:
        """Something could not be read."""
        self._unreadable.append(Unreadable(event_id, what, reason))

    def unmarked(self) -> None:
        """A call has no record: it is none of ours, or from before there were any."""
        self._unmarked = True

    def unrecorded(self, event_id: int, name: str, kind: str) -> None:
        """A call has no record, and no contract is known by which to judge it."""
        self._unrecorded.append(UnrecordedCall(event_id, name, kind))

    @property
    def may_hide_actions(self) -> bool:
        """Whether an action may have been started that no record tells of."""
        return self._unmarked or bool(self._unreadable)

    def lacks(self, what: str) -> bool:
        """Tell whether something of a kind could not be read."""
        return any(each.what == what for each in self._unreadable)

    def all_unreadable(self) -> tuple[Unreadable, ...]:
        """List what could not be read."""
        return tuple(self._unreadable)

    def unrecorded_of(self, actions: Collection[tuple[Kind, str]]) -> tuple[UnrecordedCall, ...]:
        """List the calls without a record that are known to be actions.

        Args:
            actions: What is known to be one: what it is and its name.
        """
        return tuple(
            call
            for call in self._unrecorded
            if ("activity" if call.kind == "local-activity" else call.kind, call.action) in actions
        )
