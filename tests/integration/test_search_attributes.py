"""Search attributes of runs that unwind: asked for, registered, and switched on and off."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from agboss_temporal import CompensationPlugin, search_attributes
from agboss_temporal.cli import execute
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.search_attributes import OPEN, STATUS
from tests.conftest import binary
from tests.integration import telemetry_flows as flows
from tests.support.acts import ACTIVITIES, WORLD
from tests.support.harness import Handle, Harness, until, until_did


def plugin(*, on: bool) -> CompensationPlugin:
    return CompensationPlugin(search_attributes=on)


@pytest.fixture
async def fresh() -> AsyncIterator[WorkflowEnvironment]:
    """A server that knows neither of them."""
    env = await WorkflowEnvironment.start_local(
        dev_server_existing_path=binary("temporal"), dev_server_log_level="error"
    )
    async with env:
        yield env


@pytest.fixture
async def indexed(harness: Harness) -> AsyncIterator[Harness]:
    """A harness whose runs have them."""
    await search_attributes.register(harness.plain)
    own = harness.with_(plugin=plugin(on=True))
    WORLD.broken.add("stuck")
    yield own
    WORLD.broken.discard("stuck")


async def shown(handle: Handle) -> tuple[str | None, int | None]:
    found = (await handle.describe()).typed_search_attributes
    return found.get(STATUS), found.get(OPEN)


async def command(client: Client, *arguments: str) -> int:
    address = client.service_client.config.target_host
    line = ["search-attributes", *arguments, "--address", address]
    return await asyncio.to_thread(execute, line)


async def test_a_namespace_that_lacks_them(
    fresh: WorkflowEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    config = fresh.client.config()
    config["plugins"] = [plugin(on=True)]
    client = Client(**config)

    def worker() -> Worker:
        return Worker(client, task_queue="q", workflows=[flows.Told], activities=ACTIVITIES)

    told = re.escape("`agboss-temporal search-attributes register --namespace default`")
    with pytest.raises(ConfigurationError, match=f"CompensationStatus .Keyword.*{told}"):
        async with asyncio.timeout(20), worker():
            await asyncio.sleep(20)
    with pytest.raises(ConfigurationError, match="CompensationOpen"):
        await asyncio.wait_for(worker().run(), 20)
    async with Worker(client, task_queue="q", activities=ACTIVITIES):
        pass
    assert await command(client, "check") == 1
    assert await command(client, "register") == 0
    assert await command(client, "register") == 0
    assert await command(client, "check") == 0
    assert capsys.readouterr().out.splitlines() == [
        "missing: CompensationStatus, CompensationOpen",
        "registered: CompensationStatus, CompensationOpen",
        "all there already",
        "all there",
    ]
    async with worker():
        pass


async def test_one_of_another_type(
    fresh: WorkflowEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {"CompensationStatus": IndexedValueType.INDEXED_VALUE_TYPE_DATETIME}
    await fresh.client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace="default", search_attributes=wrong)
    )
    assert await command(fresh.client, "register") == 2
    assert "CompensationStatus is of type Datetime, not Keyword" in capsys.readouterr().err


async def test_a_server_that_does_not_say(
    time_skipping: WorkflowEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker starts; whether it can write them turns out later."""
    harness = Harness(time_skipping.client, plugin=plugin(on=True))
    async with harness.worker([flows.Told]):
        await until_logged(caplog, "cannot find out whether namespace default has")


async def until_logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async def there() -> bool:
        return text in caplog.text

    await until(there)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("good", (None, None)),
        ("fails", ("completed", 0)),
        ("gives_up", ("partial", 1)),
        ("joins", ("completed", 0)),
    ],
)
async def test_what_they_say_in_the_end(
    indexed: Harness, how: str, expected: tuple[str | None, int | None]
) -> None:
    async with indexed.worker([flows.Told]) as queue:
        handle = await indexed.start(queue, flows.Told.run, how)
        await indexed.finish(handle)
        assert await shown(handle) == expected


async def test_a_run_that_continues_another_corrects_what_it_has_from_it(indexed: Harness) -> None:
    async with indexed.worker([flows.Told]) as queue:
        handle = await indexed.start(queue, flows.Told.run, "undoes_a_part_and_goes_on")
        await handle.result()
        first = indexed.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        assert await shown(first) == ("completed", 1)
        assert await shown(handle) == ("none", 0)


async def test_what_they_say_meanwhile(indexed: Harness) -> None:
    WORLD.gate("release:gate")
    async with indexed.worker([flows.ToldAtGate]) as queue:
        handle = await indexed.start(queue, flows.ToldAtGate.run)
        await until_did(handle, "at:release:gate")
        assert await shown(handle) == ("running", 2)
        query = f"CompensationStatus = 'running' AND CompensationOpen > 1 AND TaskQueue = '{queue}'"

        async def listed() -> bool:
            return [each.id async for each in indexed.client.list_workflows(query)] == [handle.id]

        await until(listed)
        WORLD.gates.pop("release:gate").set()
        await indexed.finish(handle)
        assert await shown(handle) == ("completed", 0)


async def test_what_they_cost(harness: Harness, indexed: Harness) -> None:
    for how, more in {
        "good": [],
        "fails": ["MarkerRecorded", *["UpsertWorkflowSearchAttributes"] * 3],
    }.items():
        without = (await harness.run(flows.Told, how)).events
        events = (await indexed.run(flows.Told, how)).events
        assert sorted(events) == sorted([*without, *more])


async def test_what_a_finish_seals_is_no_longer_open(indexed: Harness) -> None:
    async with indexed.worker([flows.ToldTwice]) as queue:
        handle = await indexed.start(queue, flows.ToldTwice.run, False)
        await until_did(handle, "note:caught")
        assert await shown(handle) == ("completed", 1)
        await handle.signal(flows.ToldTwice.proceed)
        await indexed.finish(handle)
        assert await shown(handle) == ("completed", 0)


@pytest.mark.parametrize("first", [True, False], ids=["switched-off", "switched-on"])
async def test_a_run_goes_on_as_it_began(harness: Harness, first: bool) -> None:
    """The option changes between two unwinds of one run; its history decides."""
    await search_attributes.register(harness.plain)
    before, after = (harness.with_(plugin=plugin(on=on)) for on in (first, not first))
    async with before.worker([flows.ToldTwice], max_cached_workflows=0) as queue:
        handle = await before.start(queue, flows.ToldTwice.run, True)
        await until_did(handle, "note:caught")
        assert await shown(handle) == (("completed", 1) if first else (None, None))
    async with after.worker([flows.ToldTwice], queue=queue, max_cached_workflows=0):
        await handle.signal(flows.ToldTwice.proceed)
        done = await after.finish(handle)
    assert "WorkflowTaskFailed" not in done.events
    assert done.world == ["charge:main", "charge:part", "refund:part", "note:caught", "refund:main"]
    assert await shown(handle) == (("completed", 0) if first else (None, None))
    await before.replay_all()
    await after.replay_all()


async def test_a_run_that_has_not_unwound_yet_takes_the_new_option(harness: Harness) -> None:
    await search_attributes.register(harness.plain)
    before, after = (harness.with_(plugin=plugin(on=on)) for on in (False, True))
    async with before.worker([flows.ToldByHandlers], max_cached_workflows=0) as queue:
        handle = await before.start(queue, flows.ToldByHandlers.run)
        await until_did(handle, "charge:main")
    async with after.worker([flows.ToldByHandlers], queue=queue, max_cached_workflows=0):
        await handle.cancel()
        await after.finish(handle)
    assert await shown(handle) == ("completed", 0)
