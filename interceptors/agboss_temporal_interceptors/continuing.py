"""Continuing as new: running actions settle, nothing is undone, open entries go along (rule H5)."""

from __future__ import annotations

import logging
from typing import Any, Final

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.worker import ContinueAsNewInput

from agboss_temporal.call import Call, settle
from agboss_temporal.carrying import packed, unpack
from agboss_temporal.core import carry
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.scope import Scope
from agboss_temporal.core.sealing import SEALED_UNIT
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.run import Run
from agboss_temporal.telemetry.logs import log

MAX_CARRIED_BYTES: Final = 40 * 1024
"""How large the carried ledger may be, in bytes of memo."""


async def settle_closed(run: Run) -> None:
    """Settle the named calls that still run, and let handlers that fail by it undo what they did.

    Further named calls are refused from now on.
    """
    run.closing = True
    run.close_scope(Scope())
    async with run.turns.alone(run.turns.announce(())):
        await settle(named_calls(run), withdraw=False)
    await run.rest()
    await run.turns.idle()


def named_calls(run: Run) -> list[Call]:
    """List the named calls in flight."""
    return [call for call in run.calls_within(Scope()) if call.is_named]


def put_into_memo(run: Run, input: ContinueAsNewInput) -> None:
    """Merge the open entries into the memo of the next run, or take an old record out of it.

    Args:
        run: The run that continues as new.
        input: What it continues with; its memo is set.

    Raises:
        ConfigurationError: The open entries do not fit. The workflow task fails, nothing is
            undone and nothing is lost.
    """
    if run.calls_within(Scope()):
        log(
            logging.WARNING,
            "child_cut_off",
            "the run continues as new while children that unwind themselves still run; the "
            "server cancels them now",
        )
    memo = workflow.info().raw_memo
    entries = run.ledger.to_undo()
    if not entries and not {carry.MEMO, SEALED_UNIT} & memo.keys():
        return
    theirs: dict[str, Any] = {name: RawValue(value) for name, value in memo.items()}
    if input.memo:  # An empty one means "keep the old one" to the server.
        theirs = dict(input.memo)
    for ours in (carry.MEMO, SEALED_UNIT):
        theirs.pop(ours, None)
    if entries:
        theirs[carry.MEMO] = RawValue(_record(entries))
    elif not theirs:
        theirs[carry.MEMO] = None
    input.memo = theirs


def adopt(run: Run, info: workflow.Info) -> None:
    """Take over the entries that the run before this one handed over.

    Only that run's: a retry, a cron run or a timed-out attempt finds the same memo and must not
    undo what it did not do.
    """
    payload = info.raw_memo.get(carry.MEMO)
    if payload is None or not payload.data:
        return
    if carry.written_by(payload.data) != info.continued_run_id:
        return
    unpack(run, carry.decode(payload.data))


def _record(entries: list[Entry]) -> Payload:
    rows = packed(sorted(entries, key=lambda e: e.sequence))
    data = carry.encode(rows, workflow.info().run_id)
    if len(data) > MAX_CARRIED_BYTES:
        raise ConfigurationError(
            f"continuing as new would carry {len(rows)} open actions in {len(data)} bytes of memo; "
            f"the limit is {MAX_CARRIED_BYTES}. Commit or compensate() some before"
        )
    return Payload(metadata={"encoding": b"json/plain"}, data=data)
