"""The activity side: who an execution is, read from its header, and what is not recorded."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Literal

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from agboss_temporal import idempotency, idempotency_key
from agboss_temporal.core import wire
from agboss_temporal.core.contract import Contract, ContractTable
from agboss_temporal.core.wire import CallRecord
from agboss_temporal.exceptions import IdempotencyKeyError
from agboss_temporal_interceptors.activity import CompensationActivityInbound

TABLE = ContractTable(
    [Contract("reserve", undo="release"), Contract("order", kind="workflow", undo="cancel_order")]
)


class Root(ActivityInboundInterceptor):
    """Stands for the activity: says which identity it finds."""

    def __init__(self) -> None:
        pass

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        source = idempotency.current.get(None)
        return None if source is None else source.read()


async def execute(
    data: bytes | None,
    *,
    encoding: bytes = b"json/plain",
    unrecorded: Literal["log", "fail"] = "log",
    root: ActivityInboundInterceptor | None = None,
    **info: Any,
) -> Any:
    env = ActivityEnvironment()
    env.info = replace(env.info, namespace="shop", workflow_id="order-1", **info)
    headers = {}
    if data is not None:
        headers[wire.HEADER] = Payload(metadata={"encoding": encoding}, data=data)
    inbound = CompensationActivityInbound(root or Root(), TABLE, unrecorded)

    async def work() -> Any:
        call = ExecuteActivityInput(fn=work, args=[], executor=None, headers=headers)
        try:
            return await inbound.execute_activity(call)
        finally:
            assert idempotency.current.get(None) is None

    return await env.run(work)


@pytest.mark.parametrize(
    ("record", "key", "role"),
    [
        (CallRecord(action_key="9f-1", undo="release"), "9f-1", "action"),
        (CallRecord(committer_key="9f-2"), "9f-2", "committer"),
        (CallRecord(undoes="9f-1", unwind=1), "9f-1", "undo"),
        (CallRecord(undoes="9f-1", explicit=True), "9f-1", "undo"),
    ],
)
async def test_the_header_says_who_it_is(record: CallRecord, key: str, role: str) -> None:
    identity = await execute(wire.encode(record))
    assert identity == idempotency.ActivityIdentity("shop", "order-1", key, role)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "encoding", "says"),
    [
        (b"\x00\x01", b"binary/encrypted", "codec"),
        (b"{", b"json/plain", "not JSON"),
        (b'{"v":9,"a":"9f-1"}', b"json/plain", "version 9"),
    ],
)
async def test_a_header_that_cannot_be_read_does_no_harm_until_it_is_needed(
    data: bytes, encoding: bytes, says: str
) -> None:
    identity = await execute(data, encoding=encoding)
    assert says in identity.fault
    assert identity.key == ""

    class Asks(Root):
        async def execute_activity(self, input: ExecuteActivityInput) -> Any:
            return idempotency_key()

    with pytest.raises(IdempotencyKeyError, match=says):
        await execute(data, encoding=encoding, root=Asks())


async def test_the_identity_goes_when_the_activity_raises() -> None:
    class Breaks(Root):
        async def execute_activity(self, input: ExecuteActivityInput) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await execute(wire.encode(CallRecord(action_key="9f-1")), root=Breaks())


async def test_an_undo_of_nothing_known_has_no_key_of_an_action() -> None:
    class Asks(Root):
        async def execute_activity(self, input: ExecuteActivityInput) -> Any:
            return idempotency_key(role="action")

    lost = CallRecord(undoes="", explicit=True, own_key="9f-7")
    with pytest.raises(IdempotencyKeyError):
        await execute(wire.encode(lost), root=Asks())


async def test_an_action_without_a_header_runs_and_is_noticed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "agboss_temporal"):
        assert await execute(None, activity_type="reserve", workflow_type="Order") is None
    assert "reserve runs unrecorded" in caplog.text
    assert "Order" in caplog.text


async def test_an_action_without_a_header_may_have_to_fail_so_that_a_deploy_cures_it() -> None:
    with pytest.raises(ApplicationError, match="reserve runs unrecorded") as refusal:
        await execute(None, activity_type="reserve", unrecorded="fail")
    assert refusal.value.type == "UnrecordedAction"
    assert not refusal.value.non_retryable


@pytest.mark.parametrize("name", ["release", "order", "note"])
async def test_what_is_no_action_needs_no_header(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "agboss_temporal"):
        assert await execute(None, activity_type=name, unrecorded="fail") is None
    assert caplog.records == []
