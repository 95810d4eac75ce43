"""Taking entries out of histories into the plan of a recovery, with their recorded payloads."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import ActivitySerializationContext, DataConverter

from agboss_temporal.core.carry import Carried
from agboss_temporal.core.choosing import Candidate, Placed
from agboss_temporal.core.errors import RecoveryRefused
from agboss_temporal.history.payloads import decoded
from agboss_temporal.recovery.runs import Runs
from agboss_temporal.undo_options import to_json


async def packed(runs: Runs, placed: Placed) -> Carried:
    """Take an entry along, without codec: the plan itself passes the codec again.

    The payload converter never sees what was recorded.

    Raises:
        RecoveryRefused: The codec cannot decode it.
    """
    candidate = placed.candidate
    entry, contract = candidate.entry, candidate.entry.contract
    result = [] if entry.result is None else [entry.result]
    return Carried(
        key=entry.key,
        contract=contract,
        raw=next(
            iter(
                await _plain(runs, candidate, result)
                if contract.undo_input in ("result", "context")
                else ()
            ),
            None,
        ),
        args=tuple(await _plain(runs, candidate, entry.args) if contract.needs_args else ()),
        doubt=entry.doubt,
        task_queue=entry.task_queue or candidate.run.task_queue,
        priority=entry.priority,
        after=placed.after,
        undo_options=to_json(contract.undo_options),
        origin=candidate.run.workflow_id,
    )


async def _plain(runs: Runs, candidate: Candidate, payloads: Sequence[Payload]) -> list[bytes]:
    entry = candidate.entry
    try:
        if not entry.carried:
            payloads = await decoded(payloads, _converter(runs, candidate))
    except Exception as err:
        raise RecoveryRefused(
            "unreadable",
            f"what was recorded for {entry.contract.action} {entry.key} of "
            f"{candidate.run.workflow_id} cannot be decoded ({type(err).__name__}); give the "
            "client the data converter and codec of its workers",
        ) from err
    return [payload.SerializeToString() for payload in payloads]


def _converter(runs: Runs, candidate: Candidate) -> DataConverter:
    """Return the converter as it was when the payloads were written."""
    entry, run = candidate.entry, candidate.run
    if entry.contract.kind == "workflow":
        return runs.converter(entry.call_id)
    return runs.client.data_converter.with_context(
        ActivitySerializationContext(
            namespace=runs.client.namespace,
            workflow_id=run.workflow_id,
            workflow_type=run.workflow_type,
            activity_type=entry.contract.action,
            activity_id=entry.call_id,
            activity_task_queue=entry.task_queue or run.task_queue,
            is_local=False,
        )
    )
