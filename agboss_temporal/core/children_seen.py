"""The child workflows of a run, as its history shows them."""

from __future__ import annotations

from dataclasses import replace

from agboss_temporal.core.facts import Call
from agboss_temporal.core.run_ledger import ChildRun


class ChildrenSeen:
    """The children that a run has started, by the events that initiated them."""

    def __init__(self) -> None:
        self._children: dict[int, ChildRun] = {}

    def begin(self, call: Call, key: str | None) -> None:
        """List a child that was initiated.

        Args:
            call: The call.
            key: Key of its entry, if it is an action.
        """
        self._children[call.event_id] = ChildRun(
            event_id=call.event_id,
            workflow_type=call.name,
            workflow_id=call.call_id,
            namespace=call.namespace,
            compensated=key is not None or call.parent_close_policy == "request_cancel",
            parent_close_policy=call.parent_close_policy,
            key=key,
            takes_over=call.record is not None and call.record.hands_over is not None,
        )

    def started(self, of: int, run_id: str | None) -> None:
        """A call was picked up; if it is a child, it has a run."""
        child = self._children.get(of)
        if child is not None:
            self._children[of] = replace(child, run_id=run_id or None)

    def ended(self, of: int, end: str, event_id: int) -> None:
        """A call was settled by an event; if it is a child, that is how it ended."""
        child = self._children.get(of)
        if child is not None:
            self._children[of] = replace(child, end=end, end_event_id=event_id)

    def listed(self) -> tuple[ChildRun, ...]:
        """List them in the order in which they were initiated."""
        return tuple(self._children.values())
