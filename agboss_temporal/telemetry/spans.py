"""Spans of workflow code. Imported only where the tracer provider is safe under replay.

Such a provider gives a span the same id in a run and in every replay, and exports it once. So spans
are always made, in replay too, and never ended but by what happens in the run: a coroutine that is
thrown away, because its run is evicted, ends none.

A context is attached only around a call, or in a task of its own for the rest of its life. So no
frame has to detach what it attached before an eviction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    Tracer,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio import workflow
from temporalio.converter import PayloadConverter

from agboss_temporal.core.entry import Entry, State
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.core.report import TRIGGERS
from agboss_temporal.telemetry import names
from agboss_temporal.telemetry.enriching import context_of

_SDK_HEADER: Final = "_tracer-data"
"""The header in which temporalio's interceptors send the current span along."""

Attributes = dict[str, str | int]


class Spans:
    """The spans of one run.

    Args:
        tracer: Makes them.
        actions: Whether an action has a span of its own.
    """

    def __init__(self, tracer: Tracer, *, actions: bool) -> None:
        self._tracer = tracer
        self._traces_actions = actions
        self._main: Context | None = None
        self._actions: dict[str, Span] = {}
        self._sent: dict[str, Any] = {}
        self._unwinds: dict[Unwind, tuple[Span, Context]] = {}
        self._undos: dict[str, Span] = {}
        self._links: dict[str, SpanContext | None] = {}

    def main_begins(self) -> None:
        """Keep the context in which the run method is executed."""
        self._main = contexts.get_current()

    @contextmanager
    def starting(self, entry: Entry, input: Any) -> Iterator[None]:
        """Make an action's span the current one while its call starts."""
        # Made in any case: ids are drawn one after another, and a worker that takes over draws the
        # same ones only if whether actions are traced does not matter. What never ends is not seen.
        attributes = {**_of_run(), **_of_entry(entry)}
        span = self._start(f"Action:{entry.contract.action}", None, attributes)
        if not self._traces_actions:
            yield
        else:
            self._actions[entry.key] = span
            with _current(span):
                yield
        self._sent[entry.key] = input.headers.get(_SDK_HEADER)

    def settled(self, entry: Entry, state: State) -> None:
        """End an action's span; keep what its undo is to be linked to, while it may be undone."""
        span = self._actions.pop(entry.key, None)
        if span is None:
            return
        span.set_attribute(names.ACTION_STATE, names.OPENED if state is State.OPEN else state)
        if entry.doubt is not None:
            span.set_attribute(names.ACTION_DOUBT, entry.doubt)
            span.set_status(Status(StatusCode.ERROR))
        span.end(workflow.time_ns())
        self._sent[entry.key] = span.get_span_context()

    def forget(self, entry: Entry) -> None:
        """Let go of an entry that is never undone any more."""
        self._sent.pop(entry.key, None)

    def unwind_begins(self, unwind: Unwind) -> None:
        """Show at once that an unwind has begun, and open its span for the rest of this task."""
        parent = contexts.get_current()
        if unwind.unit is None and unwind.trigger in TRIGGERS and self._main is not None:
            parent = self._main
        attributes = {**_of_run(), **_of_unwind(unwind)}
        kind = workflow.info().workflow_type
        self._start(f"UnwindStarted:{kind}", parent, attributes).end(workflow.time_ns())
        span = self._start(f"Unwind:{kind}", parent, attributes)
        self._unwinds[unwind] = span, parent
        contexts.attach(trace.set_span_in_context(span, parent))

    def unwind_ended(self, unwind: Unwind, verdicts: Mapping[str, int]) -> None:
        """End an unwind's span."""
        span, _ = self._unwinds.pop(unwind)
        span.set_attributes(
            {
                names.UNWIND_ORDINAL: unwind.ordinal,
                names.UNWIND_SIZE_ATTRIBUTE: len(unwind.plan),
                names.UNWIND_STATUS: unwind.status,
                **{names.UNWIND_VERDICTS + name: count for name, count in verdicts.items()},
            }
        )
        if unwind.left_behind:
            span.set_status(Status(StatusCode.ERROR))
        span.end(workflow.time_ns())

    def undo_begins(self, unwind: Unwind, planned: Planned) -> None:
        """Open an undo's span, linked to its action's."""
        entry = planned.entry
        span, parent = self._unwinds[unwind]
        to = self._links[entry.key] = self._span_of(entry, parent)
        links = [] if to is None else [Link(to, {names.LINK: names.COMPENSATES})]
        attributes: Attributes = {
            **_of_run(),
            **_of_entry(entry),
            names.ACTION_OUTCOME: planned.outcome,
            names.UNDO_NAME: entry.contract.undo or "",
        }
        self._undos[entry.key] = self._start(
            f"Undo:{entry.contract.action}",
            trace.set_span_in_context(span, parent),
            attributes,
            links,
        )

    @contextmanager
    def calling_undo(self, entry: Entry) -> Iterator[None]:
        """Make an undo's span the current one while it is called."""
        with _current(self._undos[entry.key]):
            yield

    def link_to(self, entry: Entry) -> str | None:
        """Write what the undo of an entry is linked to, for the span of its activity."""
        if entry.key in self._links:
            to = self._links[entry.key]
        else:
            to = self._span_of(entry, self._main or Context())
        if to is None:
            return None
        carrier: dict[str, str] = {}
        around = trace.set_span_in_context(NonRecordingSpan(to), Context())
        TraceContextTextMapPropagator().inject(carrier, around)
        return carrier.get("traceparent")

    def judged(self, planned: Planned) -> None:
        """End an undo's span."""
        self._links.pop(planned.entry.key, None)
        span = self._undos.pop(planned.entry.key, None)
        if span is None:
            return
        span.set_attribute(names.UNDO_VERDICT, planned.verdict or "")
        if planned.reason is not None:
            span.set_attribute(names.UNDO_REASON, planned.reason)
        if planned.verdict == State.FAILED:
            span.set_status(Status(StatusCode.ERROR))
        span.end(workflow.time_ns())

    def _span_of(self, entry: Entry, around: Context) -> SpanContext | None:
        """Find the span of an action: its own, or the one under which it was called.

        That of the whole run says nothing, so it is left out.
        """
        found = self._sent.get(entry.key)
        if found is None or isinstance(found, SpanContext):
            return found
        caller = context_of(PayloadConverter.default.from_payload(found))
        own = trace.get_current_span(around).get_span_context()
        return None if caller.span_id == own.span_id else caller

    def _start(
        self,
        name: str,
        parent: Context | None,
        attributes: Attributes,
        links: list[Link] | None = None,
    ) -> Span:
        return self._tracer.start_span(
            name, parent, attributes=attributes, links=links, start_time=workflow.time_ns()
        )


def _of_run() -> Attributes:
    info = workflow.info()
    return {names.WORKFLOW_ID: info.workflow_id, names.RUN_ID: info.run_id}


def _of_entry(entry: Entry) -> Attributes:
    return {names.ACTION_NAME: entry.contract.action, names.ACTION_KEY: entry.key}


def _of_unwind(unwind: Unwind) -> Attributes:
    attributes: Attributes = {names.UNWIND_TRIGGER: unwind.trigger}
    for name, value in (
        (names.UNWIND_UNIT, unwind.unit),
        (names.UNWIND_ORIGIN, unwind.origin),
        (names.ERROR_TYPE, unwind.cause),
    ):
        if value is not None:
            attributes[name] = value
    return attributes


@contextmanager
def _current(span: Span) -> Iterator[None]:
    token = contexts.attach(trace.set_span_in_context(span))
    try:
        yield
    finally:
        # A call that is thrown away is left in another context, where there is nothing to restore.
        with suppress(ValueError):
            token.var.reset(token)
