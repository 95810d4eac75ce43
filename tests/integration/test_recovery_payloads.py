"""What the undos of a recovery are given, and that nothing of it is seen on the way."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes

from agboss_temporal import recovery
from agboss_temporal.cli.recovery_documents import plan_document, recovery_document
from agboss_temporal.cli.showing import text_of
from agboss_temporal.recovery import RecoveryRefused
from agboss_temporal.undo_context import UndoReason
from tests.integration import recovery_payload_flows as flows
from tests.integration import undo_input_form_flows as forms
from tests.integration import undo_input_result_flows as results
from tests.integration.codec import CONVERTERS, ContextCodec, with_shelf
from tests.integration.limit_flows import grow, shrink
from tests.integration.recovery_flows import Many
from tests.integration.test_undo_input import NEEDS_PYDANTIC, WANTED
from tests.integration.undo_input_seen import SEEN, Narrow, Order
from tests.support.acts import ACTIVITIES
from tests.support.harness import Harness, events_of, until_did, until_observed
from tests.support.recoveries import recover, undone

CODECS = {
    **CONVERTERS,
    "context": dataclasses.replace(
        DataConverter.default,
        payload_codec=ContextCodec(),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    ),
}


@pytest.fixture(params=CODECS)
async def converted(harness: Harness, request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    """A harness under each of the data converters."""
    own = Harness(harness.plain, cache=harness.cache, data_converter=CODECS[request.param])
    yield own
    if request.param != "context":  # A replayer has another namespace and queue.
        await own.replay_all()


async def test_each_undo_is_given_what_was_recorded(converted: Harness) -> None:
    pydantic = "ydantic" in type(converted.client.data_converter.payload_converter).__name__
    cases = [c for c in results.RESULTS if pydantic or c not in NEEDS_PYDANTIC]
    activities: list[Callable[..., Any]] = [fn for pair in results.RESULTS.values() for fn in pair]
    async with converted.worker([flows.Gave], activities) as queue:
        handle = await converted.start(queue, flows.Gave.run, cases)
        await until_observed(handle, len(cases))
        await handle.terminate()
        found = await recover(converted, handle)
        assert found.status == "completed"
        seen = SEEN[found.recovery_ids[0]]
        for case, value in zip(reversed(cases), seen, strict=True):
            if case == "account":
                assert value.password.get_secret_value() == "s3cret"
            else:
                assert (case, value, type(value)) == (case, WANTED[case], type(WANTED[case]))


@pytest.mark.parametrize("called", ["do_with_context", "do_with_args"])
async def test_each_form_of_input_is_as_in_the_run(converted: Harness, called: str) -> None:
    async with converted.worker([flows.Took], forms.FORMS[:4]) as queue:
        handle = await converted.start(queue, flows.Took.run, called, "private")
        await until_observed(handle)
        await handle.terminate()
        found = await recover(converted, handle)
        assert found.status == "completed"
        seen = SEEN[found.recovery_ids[0]]
        if called == "do_with_args":
            assert seen == [Order("book", ["private"]), "by post"]
            return
        ctx, args, _, result, _ = seen
        assert (args, result) == ((Order("book", ["private"]), "by post"), Narrow(5))
        assert (ctx.key, ctx.outcome) == (found.undos[0].key, "completed")
        assert ctx.reason == UndoReason("operator-request", "TerminatedError")


@pytest.fixture(params=[name for name in CONVERTERS if "encrypted" in name])
async def encrypted(harness: Harness, request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    own = Harness(harness.plain, cache=harness.cache, data_converter=CONVERTERS[request.param])
    yield own
    await own.replay_all()


async def test_nothing_private_is_seen_on_the_way(
    encrypted: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "hunter2-and-more"
    caplog.set_level(logging.DEBUG)
    async with encrypted.worker([flows.Took], forms.FORMS[:4]) as queue:
        handle = await encrypted.start(queue, flows.Took.run, "do_with_context", secret)
        await until_observed(handle)
        await handle.terminate()
        plan = await recovery.plan(encrypted.client, handle.id)
        found = await recover(encrypted, handle)
        run = encrypted.client.get_workflow_handle(found.recovery_ids[0])
        history = "".join(str(event) for event in await events_of(run))
        input = (await events_of(run))[0].workflow_execution_started_event_attributes.input
        shown = [
            *(repr(plan), json.dumps(dataclasses.asdict(plan), default=str)),
            *(repr(found), json.dumps(dataclasses.asdict(found), default=str)),
            *(text_of(plan_document(plan), coloured=False),),
            *(text_of(recovery_document(found), coloured=False),),
            *(history, caplog.text, repr((await run.describe()).raw_description)),
        ]
        assert all(secret not in text for text in shown)
        assert input.payloads[0].metadata["encoding"] == b"binary/encrypted"
        assert handle.id.encode() not in input.payloads[0].data
        assert secret in repr(SEEN[run.id][1])  # the undo itself has seen it


async def test_without_the_codec_nothing_is_guessed(encrypted: Harness) -> None:
    async with encrypted.worker([flows.Took], forms.FORMS[:4]) as queue:
        handle = await encrypted.start(queue, flows.Took.run, "do_with_args", "secret")
        await until_observed(handle)
        await handle.terminate()
        blind = encrypted.with_(data_converter=CONVERTERS["default-encrypted"])
        if encrypted.client.data_converter is CONVERTERS["default-encrypted"]:
            blind = encrypted.with_(data_converter=CONVERTERS["pydantic-encrypted"])
        with pytest.raises(RecoveryRefused, match="cannot be decoded") as caught:
            await recovery.recover(blind.client, handle.id)
        assert caught.value.why == "unreadable"
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["default", "default-encrypted"])
async def test_a_plan_over_the_limit_of_a_payload_is_cut(harness: Harness, name: str) -> None:
    own = Harness(harness.plain, cache=harness.cache, data_converter=CONVERTERS[name])
    sizes = [900_000, 900_004, 900_008, 12]
    async with own.worker([flows.Grew], [grow, shrink]) as queue:
        handle = await own.start(queue, flows.Grew.run, sizes)
        await until_observed(handle, len(sizes))
        await handle.terminate()
        found = await recover(own, handle)
        assert found.status == "completed"
        assert undone(handle.id) == [f"shrink:{size}" for size in reversed(sizes)]
        assert len(found.recovery_ids) >= 2
    await own.replay_all()


async def test_what_is_in_external_storage_is_found_there(harness: Harness) -> None:
    own = Harness(harness.plain, cache=harness.cache, data_converter=with_shelf())
    async with own.worker([flows.Grew], [grow, shrink]) as queue:
        handle = await own.start(queue, flows.Grew.run, [400_000, 400_004])
        await until_observed(handle, 2)
        await handle.terminate()
        await recover(own, handle)
        assert undone(handle.id) == ["shrink:400004", "shrink:400000"]
    await own.replay_all()


@pytest.mark.slow
async def test_more_than_five_hundred_are_two_recoveries(harness: Harness) -> None:
    if not harness.cache:
        pytest.skip("nothing here depends on the workflow cache")
    items = [f"i{n}" for n in range(505)]
    async with harness.worker([Many], ACTIVITIES) as queue:
        handle = await harness.start(queue, Many.run, items)
        await until_did(handle, "note:done")
        await handle.terminate()
        found = await recover(harness, handle)
        assert (found.status, len(found.recovery_ids)) == ("completed", 2)
        assert sorted(undone(handle.id)) == sorted(f"refund:{item}" for item in items)
        counts = []
        for each in found.recovery_ids:
            events = await events_of(harness.client.get_workflow_handle(each))
            counts.append(
                sum(e.HasField("activity_task_scheduled_event_attributes") for e in events)
            )
        assert counts == [500, 5]
