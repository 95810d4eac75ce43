"""Faults that are put into the library on purpose, to see that the model test finds them.

Each is a context manager that takes a guarantee out of the library's own modules while it is open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from temporalio.exceptions import CancelledError

from agboss_temporal import _compat, scopes, unwind
from agboss_temporal.call import Call
from agboss_temporal.core.entry import Entry
from agboss_temporal.run import Run
from agboss_temporal_interceptors import calls, cancelling, endings, handlers


@contextmanager
def no_settle() -> Iterator[None]:
    """Cancels leave TRY_CANCEL as it is, and an unwind waits for nothing that still runs."""
    start = calls.Recorder.start_activity

    def as_given(self: calls.Recorder, input: Any, proceed: Callable[[Any], Any]) -> Any:
        given = input.cancellation_type
        return start(
            self, input, lambda i: proceed(dataclasses.replace(i, cancellation_type=given))
        )

    async def settled(waiting: Iterable[Call], *, withdraw: bool = True) -> None:
        for call in list(waiting):
            call.ask_to_cancel(withdraw=withdraw)

    with (
        patch.object(calls.Recorder, "start_activity", as_given),
        patch.object(cancelling.Canceller, "attach", lambda *args: None),
        patch.object(unwind, "settle", settled),
    ):
        yield


@contextmanager
def done_callback() -> Iterator[None]:
    """Outcomes are read from a callback on the handle, not from the event that settles the call."""

    class Callback:
        def __init__(self, handle: Any, on_success: Any, on_failure: Any) -> None:
            self.on_success, self.on_failure = on_success, on_failure
            handle.add_done_callback(self.done)

        def done(self, handle: Any) -> None:
            if handle.cancelled():
                self.on_failure(CancelledError("Cancelled"))
            elif handle.exception() is not None:
                self.on_failure(handle.exception())
            else:
                self.on_success(handle.result())

        def release(self) -> None:
            pass

    with patch.object(_compat, "Observation", Callback):
        yield


@contextmanager
def start_order() -> Iterator[None]:
    """The newest started action is undone first, not the newest completed."""

    def by_start(entries: Iterable[Entry]) -> list[Entry]:
        return sorted(entries, key=lambda e: (e.doubt is None, -e.ordinal))

    with patch.object(unwind, "reverse_completion", by_start):
        yield


@contextmanager
def unwind_on_eviction() -> Iterator[None]:
    """An eviction is taken for a cancel."""
    with ExitStack() as patches:
        for module in (unwind, scopes, endings, handlers):
            patches.enter_context(patch.object(module, "probe_eviction", lambda: None))
        yield


@contextmanager
def doubtful_committer_seals() -> Iterator[None]:
    """A committer seals although nobody knows whether it committed."""
    failed = Run.failed

    def seals(self: Run, call: Call, doubt: str | None) -> None:
        failed(self, call, doubt)
        if call.commits is not None and doubt is not None:
            self.ledger.seal(call.commits, call.unit)

    with patch.object(Run, "failed", seals):
        yield


FAULTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "no settle": no_settle,
    "done-callback": done_callback,
    "start order": start_order,
    "unwind on eviction": unwind_on_eviction,
    "doubtful committer seals": doubtful_committer_seals,
}
