"""Says on the span of an activity what the activity is to compensation. Imports OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio import activity

from agboss_temporal.core.wire import CallRecord
from agboss_temporal.telemetry import names


def describe(record: CallRecord) -> None:
    """Put attributes, and an undo's link, on the current span, if there is one that records.

    Args:
        record: What the header of the activity says.
    """
    span = trace.get_current_span()
    if not span.is_recording():
        return
    info = activity.info()
    attributes: dict[str, str | int] = {names.ROLE: record.role, names.ATTEMPT: info.attempt}
    action = record.undoes_action if record.role == "undo" else info.activity_type
    if record.role != "committer" and action is not None:
        attributes[names.ACTION_NAME] = action
        attributes[names.ACTION_KEY] = record.key
    span.set_attributes(attributes)
    if record.link is not None:
        to = context_of({"traceparent": record.link})
        if to.is_valid:
            span.add_link(to, {names.LINK: names.COMPENSATES})


def context_of(carrier: Mapping[str, str]) -> SpanContext:
    """Read who sent a W3C trace context; it is not valid if that cannot be read."""
    sender = TraceContextTextMapPropagator().extract(carrier, Context())
    return trace.get_current_span(sender).get_span_context()
