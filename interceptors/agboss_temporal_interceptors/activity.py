"""The activity side: who this execution is, and whether its action was recorded at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from agboss_temporal import idempotency
from agboss_temporal.core import wire
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.core.errors import RecordError
from agboss_temporal.exceptions import UNRECORDED_ACTION
from agboss_temporal.telemetry.attempts import count_attempt, unrecorded


class CompensationActivityInbound(ActivityInboundInterceptor):
    """Reads the header of a named call for the activity that it starts."""

    def __init__(
        self,
        next: ActivityInboundInterceptor,
        contracts: ContractTable,
        unrecorded: Literal["log", "fail"],
        describe: Callable[[wire.CallRecord], None] | None = None,
    ) -> None:
        super().__init__(next)
        self._contracts = contracts
        self._unrecorded = unrecorded
        self._describe = describe

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Set the identity for the activity's own code, then run it."""
        payload = input.headers.get(wire.HEADER)
        if payload is None:
            self._notice_unrecorded()
            return await self.next.execute_activity(input)
        record = _record(payload)
        if self._describe is not None and not isinstance(record, str):
            self._describe(record)
        source = idempotency.IdentitySource(partial(_identity, record))
        token = idempotency.current.set(source)
        try:
            if isinstance(record, str) or record.role != "undo":
                return await self.next.execute_activity(input)
            return await self._undo(record, input)
        finally:
            idempotency.current.reset(token)

    async def _undo(self, record: wire.CallRecord, input: ExecuteActivityInput) -> Any:
        try:
            result = await self.next.execute_activity(input)
        except BaseException as err:
            count_attempt(record, err)
            raise
        count_attempt(record, None)
        return result

    def _notice_unrecorded(self) -> None:
        info = activity.info()
        contract = self._contracts.get("activity", info.activity_type)
        if contract is None or not contract.is_action or info.workflow_id is None:
            return
        message = (
            f"action {info.activity_type} runs unrecorded: it will not be undone. The worker of "
            f"workflow type {info.workflow_type} lacks CompensationPlugin, or calls it as a local "
            "activity"
        )
        unrecorded(message)
        if self._unrecorded == "fail":
            raise ApplicationError(message, type=UNRECORDED_ACTION)


def _record(payload: Any) -> wire.CallRecord | str:
    """Read a header; return what is wrong with it if it cannot be read here."""
    if payload.metadata.get("encoding") != b"json/plain":
        return (
            "the compensation header is encoded and cannot be read here; give client and "
            "workers the same codec and the same header_codec_behavior"
        )
    try:
        return wire.decode(payload.data)
    except RecordError as err:
        return str(err)


def _identity(record: wire.CallRecord | str) -> idempotency.ActivityIdentity:
    if isinstance(record, str):
        return idempotency.ActivityIdentity(fault=record)
    info = activity.info()
    return idempotency.ActivityIdentity(
        namespace=info.namespace or "",
        workflow_id=record.origin or info.workflow_id or "",
        key=record.key,
        role=record.role,
        undoes_nothing=record.undoes == "",
    )
