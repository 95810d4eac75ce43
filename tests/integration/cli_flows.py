"""Workflows that the command line is pointed at, and a codec that it can import."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec
from temporalio.exceptions import ApplicationError

from agboss_temporal import CompensatedWorkflow
from tests.support.calls import charge, reserve


class Mirror(PayloadCodec):
    """Turns the bytes of payloads around, in every process in the same way."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/mirror"}, data=p.SerializeToString()[::-1])
            for p in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(p.data[::-1]) if p.metadata["encoding"] == b"binary/mirror" else p
            for p in payloads
        ]


@workflow.defn
class Order(CompensatedWorkflow):
    """Acts twice, and ends as it is told."""

    def __init__(self) -> None:
        self._how = ""

    @workflow.run
    async def run(self, item: str, again: bool = False) -> str:
        await charge("card")
        if again:
            workflow.continue_as_new(args=[item, False])
        await reserve(item)
        await workflow.wait_condition(lambda: bool(self._how))
        if self._how == "fail":
            raise ApplicationError("no", type="Refused")
        return "done"

    @workflow.signal
    def end(self, how: str) -> None:
        self._how = how


@workflow.defn
class Waits:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


@workflow.defn
class LeavesAChild(CompensatedWorkflow):
    @workflow.run
    async def run(self) -> None:
        await workflow.start_child_workflow(
            Waits.run,
            id=f"{workflow.info().workflow_id}-child",
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
        )
        await charge("card")
        await workflow.wait_condition(lambda: False)
