"""The type that undoes for other runs is registered once, and only where there are workflows."""

from __future__ import annotations

import uuid
import warnings
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import Replayer, Worker, WorkerConfig, WorkerDeploymentConfig

from agboss_temporal import CompensationPlugin
from agboss_temporal._compat import workflow_definition

RECOVERY = "agboss.recovery"


@workflow.defn(versioning_behavior=VersioningBehavior.PINNED)
class Pinned:
    @workflow.run
    async def run(self) -> None: ...


@workflow.defn
class Plain:
    @workflow.run
    async def run(self) -> None: ...


@activity.defn
async def nothing() -> None: ...


@pytest.fixture
async def client(plain_client: Client) -> Client:
    config = plain_client.config()
    config["plugins"] = [CompensationPlugin()]
    return Client(**config)


def registered(config: Any) -> list[str | None]:
    definitions = [workflow_definition(cls) for cls in config["workflows"]]
    return [d.name for d in definitions if d is not None]


def config_of(client: Client, **options: Any) -> WorkerConfig:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plugin given twice
        return Worker(client, task_queue=f"q-{uuid.uuid4().hex}", **options).config(
            active_config=True
        )


async def test_a_worker_with_workflows_has_it(client: Client) -> None:
    config = config_of(client, workflows=[Plain])
    assert registered(config) == ["Plain", RECOVERY]


async def test_given_twice_it_is_there_once(client: Client) -> None:
    config = config_of(client, workflows=[Plain], plugins=[CompensationPlugin()])
    assert registered(config) == ["Plain", RECOVERY]


async def test_a_worker_without_workflows_has_it_not(client: Client) -> None:
    config = config_of(client, activities=[nothing])
    assert registered(config) == []


async def test_a_versioned_worker_has_it_with_a_behaviour(client: Client) -> None:
    deployment = WorkerDeploymentConfig(
        version=WorkerDeploymentVersion("packaging", "1"), use_worker_versioning=True
    )
    config = config_of(client, workflows=[Pinned], deployment_config=deployment)
    assert registered(config) == ["Pinned", RECOVERY]


async def test_a_replayer_has_it_once() -> None:
    replayer = Replayer(workflows=[Plain], plugins=[CompensationPlugin()])
    assert registered(replayer.config(active_config=True)) == ["Plain", RECOVERY]
