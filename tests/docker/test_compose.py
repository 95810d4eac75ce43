"""The stack, checked by what will read it, without an engine."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docker.tools import COMPOSE, COMPOSE_BINARY, FOLDER, composed, run

PINNED = re.compile(r"[\w./-]+:v?\d[\w.-]*$")
NO_SHELL = "collector"
"""The service whose image holds nothing that could check its health."""


@pytest.fixture(params=COMPOSE)
def stack(request: pytest.FixtureRequest) -> dict[str, Any]:
    return composed(request.param)


def services(stack: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from stack["services"].items()


def test_it_is_what_the_schema_allows(stack: dict[str, Any], tmp_path: Path) -> None:
    merged = tmp_path / "compose.json"
    merged.write_text(json.dumps(stack))
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(merged))


def test_images_are_pinned(stack: dict[str, Any]) -> None:
    loose = {
        name: service["image"]
        for name, service in services(stack)
        if "build" not in service and not PINNED.match(service["image"])
    }
    assert not loose


def test_a_missing_pin_is_an_error(tmp_path: Path) -> None:
    pins = (FOLDER / ".env").read_text().splitlines()
    others = tmp_path / "others.env"
    others.write_text("\n".join(pin for pin in pins if not pin.startswith("JAEGER_IMAGE")))
    with pytest.raises(AssertionError, match=r"JAEGER_IMAGE"):
        run(COMPOSE_BINARY, "--env-file", str(others), "config")


def test_ports_are_on_the_loopback_interface(stack: dict[str, Any]) -> None:
    ports = [port for _, service in services(stack) for port in service.get("ports", [])]
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    assert len({port["published"] for port in ports}) == len(ports)


def test_what_is_mounted_is_there_and_is_not_written_to(stack: dict[str, Any]) -> None:
    binds = [
        mount
        for _, service in services(stack)
        for mount in service.get("volumes", [])
        if mount["type"] == "bind"
    ]
    assert binds
    assert [mount["source"] for mount in binds if not mount.get("read_only")] == []
    assert [mount["source"] for mount in binds if not Path(mount["source"]).exists()] == []


def test_services_that_stay_have_a_health_check_and_bounded_logs(stack: dict[str, Any]) -> None:
    staying = {name: each for name, each in services(stack) if each["restart"] == "unless-stopped"}
    unchecked = {name for name, each in staying.items() if "healthcheck" not in each}
    assert unchecked - {"temporal-ui"} == {NO_SHELL}
    assert all("max-size" in each["logging"]["options"] for _, each in services(stack))


def test_nobody_waits_for_the_health_of_what_has_no_check(stack: dict[str, Any]) -> None:
    waited_for = {
        dependency
        for _, service in services(stack)
        for dependency, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_healthy"
    }
    assert all("healthcheck" in stack["services"][name] for name in waited_for)


def test_only_the_worker_is_behind_the_profile() -> None:
    profiles = {name: each.get("profiles") for name, each in services(composed("compose"))}
    assert {name for name, each in profiles.items() if each} == {"worker"}


def test_prometheus_scrapes_where_the_worker_listens() -> None:
    worker = composed("compose")["services"]["worker"]
    port = worker["environment"]["PROMETHEUS_ADDRESS"].split(":")[1]
    config = yaml.safe_load((FOLDER / "prometheus" / "prometheus.yml").read_text())
    [found] = [each for each in config["scrape_configs"] if each["job_name"] == "worker"]
    assert found["dns_sd_configs"][0]["port"] == int(port)
    assert worker["expose"] == [port]
    assert port in worker["healthcheck"]["test"][-1]


def test_the_collector_defines_what_its_pipelines_name() -> None:
    config = yaml.safe_load((FOLDER / "collector" / "collector.yaml").read_text())
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) == set(config[kind])


def test_the_dockerfile_lints() -> None:
    run("hadolint", "Dockerfile")


def test_the_image_starts_a_module_that_is_there() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    [command] = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    python, flag, module = json.loads(command)
    assert (python, flag) == ("python", "-m")
    assert importlib.util.find_spec(module) is not None


def test_the_default_base_image_is_the_pinned_one() -> None:
    [default] = re.findall(r"^ARG PYTHON_IMAGE=(.*)$", (FOLDER / "Dockerfile").read_text(), re.M)
    assert f"PYTHON_IMAGE={default}\n" in (FOLDER / ".env").read_text()


@pytest.mark.parametrize("script", sorted(FOLDER.rglob("*.sh")), ids=lambda path: path.name)
def test_scripts_parse(script: Path) -> None:
    shell = "bash" if "bash" in script.read_text().splitlines()[0] else "sh"
    run(shell, "-n", str(script))
