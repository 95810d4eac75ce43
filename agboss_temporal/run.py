"""What one run of a workflow has done so far: its ledger, its calls in flight, its unwinds.

A `Run` lives as long as the workflow instance in the worker's cache, and is rebuilt by replay. The
interceptors feed it, the unwind works on it, and workflow code reaches it through its event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

from temporalio import workflow
from temporalio.worker import ContinueAsNewInput

from agboss_temporal import units
from agboss_temporal.call import Call
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.ledger import CommitterInDoubt, Ledger
from agboss_temporal.core.plan import Unwind, UnwindLog
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.scope import Scope, UnitPath, related
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.undo_context import wire_size

INSTALLED: Final = "__agboss_temporal_installed"
"""Name of the extern function that proves to workflow code that the interceptor is there."""

UNWIND_PATCH: Final = "agboss-unwind-1"
"""Id of the marker with which a run's own unwind begins."""

HANDLER_PATCH: Final = "agboss-handler-unwind-1"
"""Id of the marker with which the unwind of a handler begins, in a run that goes on."""

CONTINUE_PATCH: Final = "agboss-continue-1"
"""Id of the marker with which a run that continues as new lets running calls settle."""

_ON_LOOP: Final = "__agboss_temporal_run"


class Run:
    """The state of one run. Not for use outside this package.

    Attributes:
        contracts: What the worker knows.
        ledger: The entries.
        unwinds: The unwinds of the run.
        root: The unit that is the run.
        handlers: Paths of the units of the handlers at work.
        untold_updates: Digests of updates at work, by unit, that no record has named yet.
        closing: Whether it is ending, or about to continue as new.
        leaving: Whether it is about to continue as new.
        marked: Whether its own unwind has begun, as a marker in its history says.
        also_failed: Types of errors that arrived while the run was ending.
        payload_limit: Size in bytes above which the server may refuse an undo's context.
    """

    def __init__(
        self, contracts: ContractTable, default_policy: CompensationPolicy, payload_limit: int
    ) -> None:
        self.contracts = contracts
        self.payload_limit = payload_limit
        self.ledger = Ledger()
        self.unwinds = UnwindLog()
        self.root = units.Unit()
        self.handlers: dict[UnitPath, None] = {}
        self.untold_updates: dict[UnitPath, str] = {}
        self.also_failed: list[str] = []
        self.named_calls = 0
        self._default_policy = default_policy
        self._policy: CompensationPolicy | None = None
        self._policy_known = False
        self._calls: dict[str, Call] = {}
        self._ordinal = 0
        self._closed: list[Scope] = []
        self._at_work: list[tuple[UnitPath, asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.issuing: tuple[Entry, Unwind] | None = None
        self.shown = ""
        self.closing = False
        self.leaving = False
        self.marked = False
        self.continuing: ContinueAsNewInput | None = None

    # -- who and how

    def enter(self) -> None:
        """Make the run findable from the workflow code that is about to be executed."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            setattr(self._loop, _ON_LOOP, self)

    @staticmethod
    def current() -> Run:
        """Return the run of the workflow that is executing.

        Raises:
            ConfigurationError: This is not workflow code, or its worker lacks the plugin.
        """
        try:
            found = getattr(asyncio.get_running_loop(), _ON_LOOP, None)
        except RuntimeError:
            found = None
        if not isinstance(found, Run):
            raise ConfigurationError(
                "this works inside a workflow whose worker has CompensationPlugin; add it once, "
                "on the client: Client.connect(..., plugins=[CompensationPlugin()])"
            )
        return found

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The workflow's event loop."""
        self.enter()
        assert self._loop is not None
        return self._loop

    @property
    def policy(self) -> CompensationPolicy | None:
        """The policy in force; ``None`` if the workflow's class opts out."""
        if not self._policy_known:
            declared = getattr(workflow.instance(), "__agboss_policy__", lambda default: default)
            self._policy = declared(self._default_policy)
            self._policy_known = True
        return self._policy

    def now(self) -> datetime:
        """Return the workflow's time; usable also while the SDK applies events."""
        return datetime.fromtimestamp(self.loop.time(), tz=UTC)

    @property
    def unit(self) -> units.Unit:
        """The unit in which the workflow's code is executing."""
        return units.current(self.root)

    # -- calls

    def next_key(self) -> tuple[str, int]:
        """Give the next call that the run starts its key and its ordinal among all calls."""
        self._ordinal += 1
        return f"{workflow.random_seed():x}-{self._ordinal}", self._ordinal

    def track(self, call: Call) -> None:
        """Keep a call that has been started until it settles."""
        self._calls[call.key] = call

    def settle(self, call: Call) -> None:
        """Let go of a call whose settling event has been applied."""
        self._calls.pop(call.key, None)
        call.settle()

    def calls_within(self, scope: Scope, only: str | None = None) -> list[Call]:
        """List the calls in flight that an unwind settles, oldest first.

        Args:
            scope: What it covers.
            only: Only those that execute, undo or commit this action.
        """
        committers = [c.committer for c in self.contracts if c.action == only and c.committer]
        return [
            c
            for c in self._calls.values()
            if not c.left_alone
            and c.unit in scope
            and (only is None or c.concerns(only, committers))
        ]

    def completed(self, call: Call) -> None:
        """Apply the completion of a named call to the ledger."""
        if call.entry is not None:
            self.ledger.complete(call.entry, call.raw)
            self._warn_of_size(call.entry)
        if call.commits is not None:
            self.ledger.seal(call.commits, call.started_in)
        if call.undoes is not None and call.undoes.state is State.UNDOING:
            self.ledger.move(call.undoes, Step.SUCCEED)
        self.settle(call)

    def _warn_of_size(self, entry: Entry) -> None:
        """Warn if the entry's undo could not be sent what it is to be given."""
        if entry.contract.undo_input != "context":
            return
        size = wire_size(entry.args, entry.raw)
        if size > self.payload_limit:
            # The logger needs the workflow's loop, and that runs only after the events are applied.
            self.loop.call_soon(
                workflow.logger.warning,
                "the context of undo %s of %s takes about %d bytes, over the limit of %d: it will "
                "not be undone. Pass large data by reference, or declare another undo_input",
                entry.contract.undo,
                entry.contract.action,
                size,
                self.payload_limit,
            )

    def failed(self, call: Call, doubt: str | None) -> None:
        """Apply the failure of a named call to the ledger.

        Args:
            call: The call.
            doubt: Why nobody knows whether it took effect; ``None`` if it is known not to have.
        """
        if call.entry is not None:
            if doubt is None:
                self.ledger.move(call.entry, Step.DISMISS)
            else:
                self.ledger.doubt(call.entry, doubt)
        if call.commits is not None and doubt is not None:
            self.ledger.doubt_committer(CommitterInDoubt(call.key, call.commits, doubt))
        if call.undoes is not None and call.undoes.state is State.UNDOING:
            self.ledger.reopen(call.undoes)
        self.settle(call)

    # -- units

    def hand_over(self, unit: units.Unit) -> None:
        """End a unit: what belongs to it belongs to the nearest one that is still open."""
        unit.ended = True
        to = unit.still_open().path
        self.ledger.hand_over(unit.path, to)
        for call in self._calls.values():
            if call.unit == unit.path:
                call.unit = to

    def scope(self, unit: UnitPath) -> Scope:
        """Return what an unwind of a unit covers while the run goes on: no handler at work."""
        return Scope(unit, self.handlers.keys())

    def close_scope(self, scope: Scope) -> None:
        """Refuse new named calls there from now on."""
        self._closed.append(scope)

    def reopen_scope(self, scope: Scope) -> None:
        """Take back one `close_scope`."""
        self._closed.remove(scope)

    def refuses(self, unit: UnitPath) -> bool:
        """Tell whether named calls in a unit are refused: it is being unwound."""
        return any(unit in scope for scope in self._closed)

    # -- unwinding

    @asynccontextmanager
    async def alone(self, unit: UnitPath) -> AsyncIterator[None]:
        """Wait until no unwind is at work in, around or inside a unit, and keep others out."""
        while rivals := self._rivals(unit):
            await asyncio.wait(rivals)
        mine = (unit, self.loop.create_future())
        self._at_work.append(mine)
        try:
            yield
        finally:
            self._at_work.remove(mine)
            mine[1].set_result(None)

    def unwinding(self) -> bool:
        """Tell whether an unwind is at work."""
        return bool(self._at_work)

    async def idle(self) -> None:
        """Wait until no unwind is at work."""
        async with self.alone(()):
            pass

    def _rivals(self, unit: UnitPath) -> list[asyncio.Future[None]]:
        return [ended for at, ended in self._at_work if related(at, unit)]

    def report(self) -> CompensationReport:
        """Say what has become of the run's effects."""
        return self.unwinds.report(self.ledger, self.also_failed)
