"""What only a whole worker can tell to be wrong stops it before it starts (rules K1, K2)."""

# mypy: disable-error-code="empty-body"
from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.common import RawValue
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.worker import WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from agboss_temporal import (
    CompensatedWorkflow,
    CompensationPlugin,
    ContractError,
    action,
    declare,
)
from agboss_temporal.exceptions import ConfigurationError
from agboss_temporal.interceptors import CompensationInterceptor


@activity.defn
async def release(item: str) -> None: ...


@activity.defn
async def ship(item: str) -> str: ...


@activity.defn
async def refund(amount: int) -> None: ...


@workflow.defn
class Plain:
    @workflow.run
    async def run(self) -> None: ...


@workflow.defn
class Broken(CompensatedWorkflow):
    compensation = "none"  # type: ignore[assignment]

    @workflow.run
    async def run(self) -> None: ...


@workflow.defn
class OptedOut(CompensatedWorkflow):
    compensation = None

    @workflow.run
    async def run(self) -> None: ...


def reserving(**options: Any) -> Any:
    @action(**{"compensate_with": release, **options})
    @activity.defn
    async def reserve(item: str) -> str: ...

    return reserve


def configure(
    activities: Iterable[Any] = (), workflows: Iterable[type] = (), **config: Any
) -> WorkerConfig:
    given: Any = {
        "client": SimpleNamespace(data_converter=DataConverter.default),
        "activities": list(activities),
        "workflows": list(workflows),
        **config,
    }
    return CompensationPlugin().configure_worker(given)


def faults(*activities: Any, workflows: Iterable[type] = ()) -> list[tuple[str, str]]:
    with pytest.raises(ContractError) as refusal:
        configure(activities, workflows)
    return sorted((f.code, f.action) for f in refusal.value.faults)


def test_a_worker_that_has_all_it_needs_is_wired_once() -> None:
    config = configure([reserving(committed_by=ship), release, ship], [Plain])
    config["client"] = SimpleNamespace(data_converter=DataConverter.default)  # type: ignore[typeddict-item]
    again = CompensationPlugin().configure_worker(config)
    ours = [i for i in again["interceptors"] if isinstance(i, CompensationInterceptor)]
    assert len(ours) == 1


def test_an_undo_that_is_nowhere_is_a_fault() -> None:
    assert faults(reserving()) == [("action.undo-not-registered", "reserve")]


def test_an_undo_may_be_elsewhere() -> None:
    configure([reserving(undo_options={"task_queue": "undos"})])


def test_an_undo_may_be_declared() -> None:
    declare("release")
    configure([reserving()])


def test_an_undo_may_be_left_to_a_dynamic_activity() -> None:
    @activity.defn(dynamic=True)
    async def anything(args: Sequence[RawValue]) -> None: ...

    configure([reserving(), anything])


def test_a_worker_without_activities_is_not_held_to_it() -> None:
    reserving()
    configure([], [Plain])


def test_a_committer_that_is_nowhere_is_only_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"\[action.committer-not-registered\] reserve: .*'ship'"):
        configure([reserving(committed_by="ship"), release])


@pytest.mark.parametrize("declared", [False, True])
def test_a_committer_that_is_known_is_no_warning(declared: bool) -> None:
    if declared:
        declare("ship")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        configure([reserving(committed_by="ship"), release, *([] if declared else [ship])])


def test_an_undo_known_by_name_is_compared_when_it_is_seen() -> None:
    assert faults(reserving(compensate_with="refund"), refund) == [("action.undo-input", "reserve")]


def test_an_undo_known_by_name_must_not_be_undone() -> None:
    @action(compensate_with=ship)
    @activity.defn
    async def book(item: str) -> str: ...

    undo = reserving(compensate_with="book")
    assert faults(undo, book, ship) == [("action.undo-is-undoable", "reserve")]


def test_all_faults_of_all_declarations_are_told_at_once() -> None:
    @action(compensate_with="nowhere")
    @activity.defn
    async def charge(item: str) -> str: ...

    declare("charge", compensate_with="elsewhere")
    found = faults(reserving(compensate_with="refund"), refund, charge)
    assert found == [
        ("action.conflicting-contract", "charge"),
        ("action.undo-input", "reserve"),
        ("action.undo-not-registered", "charge"),
    ]


def test_a_policy_that_is_none_is_told_apart_from_one_that_is_wrong() -> None:
    configure([], [Plain, OptedOut])
    with pytest.raises(ConfigurationError, match=r"Broken\.compensation must be a Compensation"):
        configure([], [Broken])


class Decodes(DefaultPayloadConverter):
    """A payload converter that takes no notice of the types that it is asked for."""

    def from_payloads(self, payloads: Any, type_hints: Any = None) -> list[Any]:
        return super().from_payloads(payloads, None)


def refusal_of_a_converter() -> str:
    client = SimpleNamespace(data_converter=DataConverter(payload_converter_class=Decodes))
    with pytest.raises(ConfigurationError) as refusal:
        configure([], [Plain], client=client)
    return str(refusal.value)


def test_a_converter_that_cannot_hand_over_raw_values_is_refused() -> None:
    assert "does not honour the type hint RawValue" in refusal_of_a_converter()


def test_the_users_converter_is_named() -> None:
    assert "Decodes" in refusal_of_a_converter()


def test_the_sandbox_lets_the_package_through_and_keeps_the_users_choice() -> None:
    mine = SandboxedWorkflowRunner()
    runner = configure([], [Plain], workflow_runner=mine)["workflow_runner"]
    assert isinstance(runner, SandboxedWorkflowRunner)
    assert runner.restrictions.passthrough_modules > mine.restrictions.passthrough_modules
    assert {"agboss_temporal", "agboss_temporal_interceptors"} <= (
        runner.restrictions.passthrough_modules
    )


def test_a_runner_that_is_no_sandbox_is_left_alone() -> None:
    class Mine(WorkflowRunner):
        def prepare_workflow(self, defn: Any) -> None: ...
        def create_instance(self, det: Any) -> Any: ...
        def set_worker_level_failure_exception_types(self, types: Any) -> None: ...

    mine = Mine()
    assert configure([], [Plain], workflow_runner=mine)["workflow_runner"] is mine


def test_a_users_patch_callback_never_switches_ours_off() -> None:
    def none_of_it(input: Any) -> bool:
        return False

    activate = configure([], [Plain], patch_activation_callback=none_of_it)[
        "patch_activation_callback"
    ]
    assert activate is not None
    ask: Any = activate
    assert ask(SimpleNamespace(patch_id="agboss-unwind-1"))
    assert not ask(SimpleNamespace(patch_id="mine"))
    assert configure([], [Plain])["patch_activation_callback"] is None
