"""Recording named calls: the header on the way out, the outcome on the way back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import StartActivityInput, StartChildWorkflowInput

from agboss_temporal import _compat
from agboss_temporal.call import Call
from agboss_temporal.core.contract import Kind
from agboss_temporal.core.entry import Entry, Step
from agboss_temporal.core.errors import AgbossError
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.exceptions import UNWIND_IN_PROGRESS
from agboss_temporal.run import Run
from agboss_temporal.telemetry.logs import log
from agboss_temporal.undo_context import wire_size
from agboss_temporal.unwind import probe_eviction
from agboss_temporal_interceptors import arguments, headers, outcomes
from agboss_temporal_interceptors.cancelling import Canceller
from agboss_temporal_interceptors.capture import Capture
from agboss_temporal_interceptors.matching import entry_to_close

CancelType = workflow.ActivityCancellationType
ChildCancelType = workflow.ChildWorkflowCancellationType
ClosePolicy = workflow.ParentClosePolicy

_KILLS = (ClosePolicy.UNSPECIFIED, ClosePolicy.TERMINATE)

_KIND_ACTIVITY: Kind = "activity"
_KIND_WORKFLOW: Kind = "workflow"


class Recorder:
    """Starts the calls of one run and records those that a contract names."""

    def __init__(
        self, run: Run, records: headers.Records, compensated_children: frozenset[str]
    ) -> None:
        self._run = run
        self._records = records
        self._compensated_children = compensated_children
        self._canceller = Canceller()

    def start_activity(
        self, input: StartActivityInput, proceed: Callable[[StartActivityInput], Any]
    ) -> Any:
        """Start an activity; record it if a contract names it."""
        run = self._run
        if run.issuing is not None:
            entry, unwind = run.issuing
            run.issuing = None
            record = self._records.of_undo(entry, unwind, run.observer.link_to(entry))
            input.headers = headers.with_record(input.headers, record)
            return proceed(input)
        key, ordinal = run.next_key()
        call = self._named(_KIND_ACTIVITY, input.activity, key, ordinal, input.args)
        if call is None:
            return proceed(input)
        call.abandons = input.cancellation_type == CancelType.ABANDON
        link = None if call.undoes is None else run.observer.link_to(call.undoes)
        input.headers = headers.with_record(input.headers, self._records.of_call(call, link))
        if not call.abandons:
            input.cancellation_type = CancelType.WAIT_CANCELLATION_COMPLETED
        input.ret_type = self._capture(call, input)

        def start() -> Any:
            if call.entry is None:
                return proceed(input)
            _describe(call.entry, input)
            with run.observer.starting(call.entry, input):
                return proceed(input)

        handle = self._started(call, start)
        once = input.retry_policy is not None and input.retry_policy.maximum_attempts == 1
        self._watch(call, handle, single_attempt=once)
        return handle

    async def start_child(
        self,
        input: StartChildWorkflowInput,
        proceed: Callable[[StartChildWorkflowInput], Awaitable[Any]],
    ) -> Any:
        """Start a child workflow; record it if a contract names it or it is compensated."""
        run = self._run
        handed = run.handing_over.pop(input.id, None)
        if handed is not None:
            record = self._records.of_hand_over(*handed)
            input.headers = headers.with_record(input.headers, record)
            return await proceed(input)
        key, ordinal = run.next_key()
        call = self._named(_KIND_WORKFLOW, input.workflow, key, ordinal, input.args)
        known = input.workflow in self._compensated_children
        if call is None and not known:
            return await proceed(input)
        abandoned = input.parent_close_policy == ClosePolicy.ABANDON
        if call is None and abandoned:
            handle = await proceed(input)
            run.leave_running(handle, input.workflow)
            return handle
        unwinds = known or (call is not None and call.entry is not None)
        if unwinds and input.parent_close_policy in _KILLS:
            input.parent_close_policy = ClosePolicy.REQUEST_CANCEL
        if call is None:
            unit = run.unit.path
            self._refuse_while_unwinding(input.workflow, unit)
            call = Call(key, ordinal, unit)
        call.abandons = input.cancellation_type == ChildCancelType.ABANDON
        if call.is_named:
            input.headers = headers.with_record(input.headers, self._records.of_call(call))
        if input.cancellation_type == ChildCancelType.TRY_CANCEL:
            input.cancellation_type = ChildCancelType.WAIT_CANCELLATION_COMPLETED
        input.ret_type = self._capture(call, input)
        call.left_alone = abandoned
        run.track(call)
        try:
            handle = await self._start_child(call, input, proceed)
        except BaseException as err:
            self._child_not_started(call, input.workflow, err)
            raise
        self._watch(call, handle, started=True)
        return handle

    async def _start_child(
        self,
        call: Call,
        input: StartChildWorkflowInput,
        proceed: Callable[[StartChildWorkflowInput], Awaitable[Any]],
    ) -> Any:
        if call.entry is None:
            return await proceed(input)
        if call.entry.contract.needs_args:
            call.entry.args = arguments.of_call(input)
        with self._run.observer.starting(call.entry, input):
            return await proceed(input)

    def _named(self, kind: Kind, name: str, key: str, ordinal: int, args: Any) -> Call | None:
        """Make the call that a contract names, or ``None``."""
        run = self._run
        table = run.contracts
        if (kind, name) in table.ambiguous:
            raise AgbossError(
                f"{kind} {name!r} has differing contracts in this process, and this worker "
                "reaches none of them; import the right one in the workflow's module"
            )
        contract = table.get(kind, name)
        is_action = contract is not None and contract.is_action
        commits = name if name in table.committers else None
        undoes = kind == "activity" and name in table.undos
        if not (is_action or commits or undoes):
            return None
        unit = run.unit.path
        self._refuse_while_unwinding(name, unit)
        run.named_calls += 1
        call = Call(key, ordinal, unit, contract=contract, commits=commits)
        sent_at = _compat.history_length(run.loop)
        call.ended = run.ledger.tell(sent_at) if commits else ()
        call.update = run.update_to_tell(unit, sent_at) if unit else None
        if is_action and contract is not None:
            call.entry = Entry(key=key, contract=contract, ordinal=ordinal, unit=unit)
            run.ledger.begin(call.entry)
        if undoes:
            call.is_undo = True
            call.undoes = entry_to_close(run, name, args)
            if call.undoes is not None:
                run.ledger.move(call.undoes, Step.UNDO)
        return call

    def _refuse_while_unwinding(self, name: str, unit: UnitPath) -> None:
        if self._run.refuses(unit):
            raise ApplicationError(
                f"{name} was not started: what was done is being undone",
                type=UNWIND_IN_PROGRESS,
                non_retryable=True,
            )

    def _started(self, call: Call, start: Callable[[], Any]) -> Any:
        """Start a call and track it; one that cannot even be scheduled leaves no entry behind."""
        try:
            handle = start()
        except BaseException:
            self._run.failed(call, None)
            raise
        self._run.track(call)
        return handle

    def _capture(self, call: Call, input: StartActivityInput | StartChildWorkflowInput) -> Any:
        def on_payload(payload: Payload) -> None:
            call.raw = payload

        return Capture(input.ret_type, arguments.converter_of(input), on_payload)

    def _watch(
        self,
        call: Call,
        handle: Any,
        *,
        single_attempt: bool = False,
        started: bool = False,
    ) -> None:
        """Apply the settling event of a call to the ledger, and let a cancel wait for it."""
        run = self._run
        loop = run.loop
        sent_at = _compat.history_length(loop)

        def succeeded(value: Any) -> BaseException | None:
            if call.entry is not None:
                call.entry.value = value
                _warn_of_size(run, call)
            run.completed(call)
            return CancelledError("Cancelled") if call.withdrawn else None

        def failed(error: BaseException) -> None:
            never_sent = not started and _compat.history_length(loop) == sent_at
            if never_sent:
                run.not_sent(call)
            doubt = outcomes.doubt(
                error,
                call.contract,
                abandoned=call.abandons,
                never_sent=never_sent,
                single_attempt=single_attempt,
            )
            run.failed(call, doubt)

        observation = _compat.Observation(handle, succeeded, failed)
        if not call.abandons:
            self._canceller.attach(call, handle, observation, loop)
        call.cancellable(handle.cancel)

    def _child_not_started(self, call: Call, name: str, error: BaseException) -> None:
        """Account for a child whose start was refused, or was pending when a cancel came."""
        pending = isinstance(error, asyncio.CancelledError)
        self._run.failed(call, "cancelled" if pending else None)
        if pending and call.entry is None:
            probe_eviction()
            log(
                logging.WARNING,
                "child_start_pending",
                "a cancel came while a child of type %s was being started; nobody waits for it, "
                "and whether it runs is not known",
                name,
                child=name,
            )


def _warn_of_size(run: Run, call: Call) -> None:
    """Warn if the undo of a completed action could not be sent what it is to be given."""
    entry = call.entry
    if entry is None or entry.contract.undo_input != "context":
        return
    size = wire_size(entry.args, call.raw)
    if size > run.payload_limit:
        # The logger needs the workflow's loop, and that runs only after the events are applied.
        run.loop.call_soon(
            partial(
                log,
                logging.WARNING,
                "context_too_large",
                "the context of undo %s of %s takes about %d bytes, over the limit of %d: it will "
                "not be undone. Pass large data by reference, or declare another undo_input",
                entry.contract.undo,
                entry.contract.action,
                size,
                run.payload_limit,
                action=entry.contract.action,
                undo=entry.contract.undo,
                key=entry.key,
                bytes=size,
                limit=run.payload_limit,
            )
        )


def _describe(entry: Entry, input: StartActivityInput) -> None:
    """Keep what the undo inherits from its action's call."""
    entry.task_queue = input.task_queue
    entry.priority = None if input.priority == Priority.default else input.priority
    if entry.contract.needs_args:
        entry.args = arguments.of_call(input)
