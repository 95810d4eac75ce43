"""The kinds of panels that the dashboard is made of."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Sequence
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import bargauge, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

PROMETHEUS: Final = models.DataSourceRef(type_val="prometheus", uid="prometheus")
JAEGER: Final = models.DataSourceRef(type_val="jaeger", uid="jaeger")

STEP: Final = "1m"
"""Least width of a bar."""

_Panel = TypeVar(
    "_Panel", stat.Panel, table.Panel, timeseries.Panel, bargauge.Panel, builders.Panel
)


def query(expr: str, legend: str = "", *, ref: str = "A") -> prometheus.Dataquery:
    """Make a query for a course of time."""
    made = prometheus.Dataquery().expr(expr).range().ref_id(ref).datasource(PROMETHEUS)
    return made.legend_format(legend) if legend else made


def now(expr: str) -> prometheus.Dataquery:
    """Make a query for the end of the shown time."""
    made = prometheus.Dataquery().expr(expr).instant().ref_id("A").datasource(PROMETHEUS)
    return made.format(PromQueryFormat.TABLE)


class TraceSearch(Dataquery, Builder[Dataquery]):
    """A search of Grafana's Jaeger data source, for which the SDK has no builder."""

    def __init__(self, operation: str) -> None:
        self._operation = operation

    def build(self) -> TraceSearch:
        """Return itself."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return what Grafana reads."""
        return {
            "refId": "A",
            "datasource": JAEGER,
            "queryType": "search",
            "service": "$service",
            "operation": self._operation,
            "limit": 20,
        }


def jaeger_search(operation: str, tags: dict[str, str]) -> str:
    """Return the address of a search in Jaeger's own UI, in the time that the dashboard shows.

    A viewer may not use Grafana's Explore, so links lead there.
    """
    asked = {
        "service": "${service}",
        "operation": operation,
        "tags": json.dumps(tags),
        "start": "${__from}000",
        "end": "${__to}000",
        "lookback": "custom",
        "limit": "50",
    }
    return "${jaeger:raw}/search?" + urllib.parse.urlencode(asked, safe="${}:_.")


def link(title: str, url: str) -> models.DynamicConfigValue:
    """Make the property that gives a field a link."""
    return models.DynamicConfigValue(
        id_val="links", value=[{"title": title, "url": url, "targetBlank": True}]
    )


def shown(panel: _Panel, title: str, why: str, width: int, height: int = 7) -> _Panel:
    """Say what is common to all panels."""
    return panel.title(title).description(why).span(width).height(height)


def figure(title: str, why: str, expr: str, *, alarming: bool = False) -> stat.Panel:
    """Make a figure over the shown time; an alarming one is red unless it is 0."""
    color = "red" if alarming else "text"
    steps = [models.Threshold(value=None, color="text"), models.Threshold(value=1, color=color)]
    panel = shown(stat.Panel(), title, why, 4, 4).datasource(PROMETHEUS)
    return (
        panel.with_target(now(f"round({expr})"))
        .thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        .reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common.BigValueGraphMode.NONE)
        .no_value("0")
    )


def bars(title: str, why: str, width: int, expr: str, legend: str) -> timeseries.Panel:
    """Make stacked bars of what happened in each interval."""
    panel = shown(timeseries.Panel(), title, why, width).datasource(PROMETHEUS)
    return (
        panel.with_target(query(expr, legend))
        .interval(STEP)
        .draw_style(common.GraphDrawStyle.BARS)
        .fill_opacity(70)
        .stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
        .min(0)
    )


def lines(
    title: str, why: str, width: int, queries: Sequence[prometheus.Dataquery], unit: str = "short"
) -> timeseries.Panel:
    """Make lines."""
    panel = shown(timeseries.Panel(), title, why, width).datasource(PROMETHEUS)
    for each in queries:
        panel.with_target(each)
    return panel.interval(STEP).unit(unit).min(0).show_points(common.VisibilityMode.ALWAYS)
