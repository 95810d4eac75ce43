"""The workflow that undoes entries of other runs; the plugin registers it."""

from __future__ import annotations

from datetime import datetime

from temporalio import workflow
from temporalio.common import RawValue, VersioningBehavior

from agboss_temporal.carrying import unpack
from agboss_temporal.core import recovery
from agboss_temporal.core.plan import Planned, Unwind
from agboss_temporal.exceptions import CompensationFailedError
from agboss_temporal.execution import Execution, show
from agboss_temporal.hand_over import result_payload
from agboss_temporal.plan_input import policy_from_json
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.run import Run
from agboss_temporal.undo import Why
from agboss_temporal.undo_context import UndoReason
from agboss_temporal.unwind import protected


@workflow.defn(name=recovery.RECOVERY_TYPE)
class RecoveryWorkflow:
    """Executes a plan in the place of the run that made it, and says what became of each entry.

    A cancel does not interrupt it. If the plan says so, it fails where something is left behind.
    """

    @workflow.init
    def __init__(self, plan: RawValue) -> None:
        self._plan = recovery.decode_plan(plan.payload.data)
        self._policy = policy_from_json(self._plan.policy)

    def __agboss_policy__(self, default: CompensationPolicy) -> CompensationPolicy:
        """Return the policy of the run that made the plan, in place of this worker's own."""
        return self._policy

    @workflow.run
    async def run(self, plan: RawValue) -> RawValue:
        """Execute the plan.

        Args:
            plan: What `core.recovery.encode_plan` wrote.

        Returns:
            What `core.recovery.decode_result` reads.

        Raises:
            CompensationFailedError: Something is left behind, and the plan says that this is a
                failure.
        """
        run = Run.current()
        record = self._record(run)
        why = Why(record.trigger, told=_reason(self._plan))
        run.unwinds.adopt(record)
        run.observer.unwind_begins(record)
        run.observer.unwind_planned(record)
        execution = Execution(
            run, record, why, self._policy, until=self._until(run), hands_over=False
        )
        await protected(execution.run_plan())
        run.unwinds.end(record, run.now())
        run.observer.unwind_ended(record)
        show(run)
        if self._plan.fails and record.left_behind:
            raise CompensationFailedError(run.report())
        return result_payload(record)

    def _until(self, run: Run) -> datetime | None:
        if self._plan.until is None and self._policy.total_timeout is not None:
            return run.now() + self._policy.total_timeout
        return self._plan.until

    def _record(self, run: Run) -> Unwind:
        entries = unpack(run, self._plan.entries, binding=True)
        return Unwind(
            ordinal=self._plan.unwind,
            trigger=self._plan.trigger,
            cause=self._plan.cause,
            started_at=run.now(),
            plan=[Planned(entries[n], outcome=entries[n].outcome) for n in self._plan.order],
            origin=self._plan.workflow_id,
        )


@workflow.defn(
    name=recovery.RECOVERY_TYPE,
    # What it does is in its plan, so that every version does the same; an old one may be gone.
    versioning_behavior=VersioningBehavior.AUTO_UPGRADE,
)
class VersionedRecoveryWorkflow(RecoveryWorkflow):
    """The same for workers of a versioned deployment, which have to say what a new one means."""

    @workflow.init
    def __init__(self, plan: RawValue) -> None:
        super().__init__(plan)

    @workflow.run
    async def run(self, plan: RawValue) -> RawValue:
        """Execute the plan."""
        return await super().run(plan)


def _reason(plan: recovery.RecoveryPlan) -> UndoReason:
    return UndoReason(plan.trigger, plan.cause, plan.message)
