"""Prometheus's configuration and alert rules, by Prometheus's own tool."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.docker.tools import FOLDER, queries, run

RULES = FOLDER / "prometheus" / "alerts.yml"


def test_the_configuration_is_valid() -> None:
    run("promtool", "check", "config", "prometheus/prometheus.yml")


def test_alerts_do_what_their_tests_say() -> None:
    run("promtool", "test", "rules", "prometheus/alerts.test.yml")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        ("or increase(", "or 0 * increase("),
        ("last_over_time(", "0 * last_over_time("),
        ("> 0.5 *", "> 0 *"),
        ("for: 10m", "for: 30m"),
        ("for: 15m", "for: 0m"),
        ("[1d]", "[16m]"),
        ("[15m]", "[30m]"),
    ],
)
def test_a_changed_rule_fails_the_tests(rule: str, changed: str, tmp_path: Path) -> None:
    text = RULES.read_text()
    assert rule in text
    (tmp_path / "alerts.yml").write_text(text.replace(rule, changed))
    tests = (RULES.parent / "alerts.test.yml").read_text()
    (tmp_path / "alerts.test.yml").write_text(tests)
    run("promtool", "check", "rules", "alerts.yml", folder=tmp_path)
    with pytest.raises(AssertionError, match="FAILED"):
        run("promtool", "test", "rules", "alerts.test.yml", folder=tmp_path)


def test_queries_of_the_dashboard_parse(tmp_path: Path) -> None:
    rules = [{"record": f"query_{n}", "expr": expr} for n, (_, expr) in enumerate(queries())]
    assert len(rules) > 20
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    run("promtool", "check", "rules", str(path))
