"""Whether there is anybody to trace for. Without OpenTelemetry nothing of it is loaded here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from agboss_temporal.telemetry import names

if TYPE_CHECKING:
    from agboss_temporal.core.wire import CallRecord
    from agboss_temporal.telemetry.spans import Spans

_INTEGRATION: Final = "temporalio.contrib.opentelemetry"


def workflow_spans(*, actions: bool) -> Callable[[], Spans] | None:
    """Return what makes the spans of a run, asked when a worker is constructed.

    ``None`` unless the global tracer provider is one of
    `temporalio.contrib.opentelemetry.create_tracer_provider`: any other would give a replayed span
    a new id and export it again.

    Args:
        actions: Whether each action is to have a span of its own.
    """
    integration = sys.modules.get(_INTEGRATION)
    if integration is None:
        return None
    from opentelemetry import trace

    if not isinstance(trace.get_tracer_provider(), integration.ReplaySafeTracerProvider):
        return None
    from agboss_temporal.telemetry.spans import Spans

    tracer = trace.get_tracer(names.SCOPE, _version())
    return lambda: Spans(tracer, actions=actions)


def activity_describer() -> Callable[[CallRecord], None] | None:
    """Return what describes the current span of an activity, asked when a worker is constructed.

    ``None`` if nobody in the process traces: there is neither a tracer provider nor an integration
    of temporalio's, which may have one of its own. Then no span is ever current.
    """
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provided = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    if not provided and _INTEGRATION not in sys.modules:
        return None
    from agboss_temporal.telemetry.enriching import describe

    return describe


def _version() -> str:
    try:
        return version("agboss-temporal")
    except PackageNotFoundError:
        return "unknown"
