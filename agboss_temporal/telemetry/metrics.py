"""The metrics of workflow code; they count nothing while a run is replayed."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import MetricCounter, MetricHistogram, MetricHistogramTimedelta

from agboss_temporal.core.plan import Unwind
from agboss_temporal.telemetry import names


class Metrics:
    """The instruments of one run, made when they are first used."""

    def __init__(self) -> None:
        self._counters: dict[str, MetricCounter] = {}
        self._size: MetricHistogram | None = None
        self._durations: dict[str, MetricHistogramTimedelta] = {}

    def action(self, name: str, state: str) -> None:
        """Count what became of an action."""
        self.count(names.ACTIONS, action=name, state=state)

    def unwind_started(self, unwind: Unwind) -> None:
        """Count an unwind that begins."""
        self.count(names.UNWINDS_STARTED, trigger=unwind.trigger)

    def unwind_planned(self, unwind: Unwind) -> None:
        """Measure a plan."""
        if self._size is None:
            self._size = workflow.metric_meter().create_histogram(
                names.UNWIND_SIZE, names.DESCRIPTIONS[names.UNWIND_SIZE]
            )
        self._size.record(len(unwind.plan), {"trigger": unwind.trigger})

    def unwind_ended(self, unwind: Unwind) -> None:
        """Count and measure an unwind that has ended."""
        self.count(names.UNWINDS, trigger=unwind.trigger, status=unwind.status)
        if unwind.started_at is not None and unwind.ended_at is not None:
            took = unwind.ended_at - unwind.started_at
            self._measure(names.UNWIND_DURATION, took, trigger=unwind.trigger, status=unwind.status)

    def verdict(self, action: str, verdict: str, took: timedelta | None) -> None:
        """Count a verdict; measure the undo, if one was called."""
        self.count(names.UNDOS, action=action, verdict=verdict)
        if took is not None:
            self._measure(names.UNDO_DURATION, took, action=action, verdict=verdict)

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter."""
        counter = self._counters.get(name)
        if counter is None:
            counter = workflow.metric_meter().create_counter(name, names.DESCRIPTIONS[name])
            self._counters[name] = counter
        counter.add(1, labels)

    def _measure(self, name: str, took: timedelta, **labels: str) -> None:
        histogram = self._durations.get(name)
        if histogram is None:
            histogram = workflow.metric_meter().create_histogram_timedelta(
                name, names.DESCRIPTIONS[name]
            )
            self._durations[name] = histogram
        histogram.record(max(took, timedelta(0)), labels)
