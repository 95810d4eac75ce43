"""The dashboard is what its script writes, and names only what exists."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import yaml

from agboss_temporal.telemetry import names
from tests.docker.tools import DASHBOARD, FOLDER, panels, queries, run

OURS = re.compile(r"\bagboss_compensation_\w+")
SUFFIXES = re.compile(r"(_seconds)?(_total|_bucket|_sum|_count)$")


def test_the_committed_file_is_what_the_script_writes() -> None:
    run(sys.executable, "-m", "docker.dashboard", "--check", folder=FOLDER.parent)


def test_data_sources_are_the_provisioned_ones() -> None:
    provisioned = yaml.safe_load(
        (FOLDER / "grafana/provisioning/datasources/datasources.yaml").read_text()
    )
    known = {(each["type"], each["uid"]) for each in provisioned["datasources"]}
    used = {(each["type"], each["uid"]) for each in found("datasource", json_of_dashboard())}
    assert used == known


def test_metrics_are_those_of_the_library() -> None:
    alerts = (FOLDER / "prometheus" / "alerts.yml").read_text()
    used = set(OURS.findall(" ".join(expr for _, expr in queries()) + alerts))
    known = set(names.DESCRIPTIONS)
    assert {SUFFIXES.sub("", name) for name in used} <= known
    assert {SUFFIXES.sub("", name) for name in used} >= known - {names.AMBIGUOUS_UNDOS}


def test_a_panel_leads_to_the_traces() -> None:
    links = {
        title: link["url"]
        for title, panel in panels().items()
        for override in panel.get("fieldConfig", {}).get("overrides", [])
        for each in override["properties"]
        for link in each["value"]
    }
    assert set(links) == {"Gave up", "Traces of unwinds of $workflow"}
    assert all(url.startswith("${jaeger:raw}/") for url in links.values())
    assert "operation=Unwind:${__data.fields.workflow_type}" in links["Gave up"]


def json_of_dashboard() -> Any:
    return json.loads(DASHBOARD.read_text())


def found(key: str, within: Any) -> list[Any]:
    """Find the values of a key at any depth."""
    if isinstance(within, list):
        return [each for item in within for each in found(key, item)]
    if not isinstance(within, dict):
        return []
    here = [within[key]] if key in within else []
    return here + [each for item in within.values() for each in found(key, item)]
