"""What one run of a workflow has done so far: its ledger, its calls in flight, its unwinds.

A `Run` lives as long as the workflow instance in the worker's cache, and is rebuilt by replay. The
interceptors feed it, the unwind works on it, and workflow code reaches it through its event loop.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from temporalio import workflow
from temporalio.worker import ContinueAsNewInput

from agboss_temporal import _compat, units
from agboss_temporal.call import Call
from agboss_temporal.core.budget import HistoryBudget
from agboss_temporal.core.contract import ContractTable
from agboss_temporal.core.entry import Entry, State, Step
from agboss_temporal.core.ledger import CommitterInDoubt, Ledger
from agboss_temporal.core.plan import Unwind, UnwindLog
from agboss_temporal.core.report import CompensationReport
from agboss_temporal.core.scope import Scope, UnitPath, related
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.indexing import Index
from agboss_temporal.observer import Observer
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.turns import Turns

INSTALLED: Final = "__agboss_temporal_installed"
"""Name of the extern function that proves to workflow code that the interceptor is there."""

RESTLESS_TURNS: Final = 1000
"""How many turns of the loop without a pause are taken for a loop that never pauses."""

_ON_LOOP: Final = "__agboss_temporal_run"


class Run:
    """The state of one run. Not for use outside this package.

    Attributes:
        contracts: What the worker knows.
        ledger: The entries.
        unwinds: The unwinds of the run.
        turns: Keeps unwinds apart.
        root: The unit that is the run.
        handlers: Paths of the units of the handlers at work.
        updates: Digests of updates at work, by unit, and how long the history was when a record
            named them first.
        closing: Whether it is ending, or about to continue as new.
        leaving: Whether it is about to continue as new.
        marked: Whether its own unwind has begun, as a marker in its history says.
        also_failed: Types of errors that arrived while the run was ending.
        payload_limit: Size in bytes above which the server may refuse an undo's context.
        budget: How much of the history an unwind may use.
        left_running: Types of the children that unwind themselves without the run, by handle.
        observer: Who is told what happens.
        index: Its search attributes.
        handing_over: Children about to take over a part of an unwind, by id: number and unwind.
    """

    def __init__(
        self,
        contracts: ContractTable,
        default_policy: CompensationPolicy,
        payload_limit: int,
        budget: HistoryBudget,
        observer: Observer,
        index: Index,
    ) -> None:
        self.contracts = contracts
        self.payload_limit = payload_limit
        self.budget = budget
        self.left_running: dict[asyncio.Future[Any], str] = {}
        self.handed_over = 0
        self.handing_over: dict[str, tuple[int, Unwind]] = {}
        self.observer = observer
        self.index = index
        self.ledger = Ledger(observer)
        self.unwinds = UnwindLog()
        self.root = units.Unit()
        self.handlers: dict[UnitPath, None] = {}
        self.updates: dict[UnitPath, tuple[str, int | None]] = {}
        self.also_failed: list[str] = []
        self.named_calls = 0
        self._default_policy = default_policy
        self._policy: CompensationPolicy | None = None
        self._policy_known = False
        self._calls: dict[str, Call] = {}
        self._ordinal = 0
        self._closed: list[Scope] = []
        self.turns = Turns()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.issuing: tuple[Entry, Unwind] | None = None
        self.shown = ""
        self.closing = False
        self.leaving = False
        self.marked = False
        self.continuing: dict[BaseException, ContinueAsNewInput] = {}

    # -- who and how

    def enter(self) -> None:
        """Make the run findable from the workflow code that is about to be executed."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            setattr(self._loop, _ON_LOOP, self)
            self.observer.entered(self._loop)

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

    def leave_running(self, child: asyncio.Future[Any], name: str) -> None:
        """Keep in mind a child that no unwind cancels, while it runs."""
        self.left_running[child] = name
        child.add_done_callback(self.left_running.pop)

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

    def calls_about(self, scope: Scope) -> list[Call]:
        """List the calls in flight elsewhere that decide about what is open there, oldest first.

        An undo that the workflow's code called, or a committer: when they have settled, there may
        be nothing left to undo.
        """
        waiting = self.ledger.to_undo(scope)
        return [
            c
            for c in self._calls.values()
            if c.unit not in scope
            and not c.left_alone
            and (
                (c.undoes is not None and c.undoes.unit in scope)
                or any(
                    e.contract.committer == c.commits and related(e.told, c.started_in)
                    for e in waiting
                    if c.commits is not None
                )
            )
        ]

    def completed(self, call: Call) -> None:
        """Apply the completion of a named call to the ledger."""
        if call.entry is not None:
            self.ledger.complete(call.entry, call.raw)
        if call.commits is not None:
            self.ledger.seal(call.commits, call.started_in)
        if call.undoes is not None and call.undoes.state is State.UNDOING:
            self.ledger.move(call.undoes, Step.SUCCEED)
        self.settle(call)

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

    def not_sent(self, call: Call) -> None:
        """Have another record say what that of a call said which was cancelled at once."""
        self.ledger.not_sent(call.ended)
        if call.update is not None and call.unit[:1] in self.updates:
            self.updates[call.unit[:1]] = call.update, None

    # -- units

    def update_to_tell(self, unit: UnitPath, at: int) -> str | None:
        """Return the digest of the update that a unit belongs to, if no record has told it yet.

        Args:
            unit: The unit.
            at: Length of the history. What was told in the same workflow task is told again: the
                call that told it may be cancelled before it is sent.
        """
        digest, told_at = self.updates.get(unit[:1], (None, None))
        if digest is None or told_at not in (None, at):
            return None
        self.updates[unit[:1]] = digest, at
        return digest

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

    async def rest(self) -> None:
        """Let all other code go on until it waits for something outside."""
        for _ in range(RESTLESS_TURNS):
            if not _compat.has_more_to_do(self.loop):
                return
            await asyncio.sleep(0)

    def report(self) -> CompensationReport:
        """Say what has become of the run's effects."""
        return self.unwinds.report(self.ledger, self.also_failed)
