"""A policy refuses what it does not know and what this version would not do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError
from temporalio.common import RetryPolicy

from agboss_temporal.core.contract import UNDO_OPTION_NAMES
from agboss_temporal.policy import CompensationPolicy
from agboss_temporal.undo_options import DEFAULT_UNDO_OPTIONS


def test_the_defaults_are_those_of_the_contract_with_users() -> None:
    policy = CompensationPolicy()
    assert policy.triggers == {"node-failure", "run-cancel", "cap-breach", "operator-request"}
    assert policy.model_dump(exclude={"triggers"}) == {
        "order": "reverse-completion",
        "max_parallel": 20,
        "undo_options": {},
        "total_timeout": None,
        "on_exhausted": "continue",
        "approval_scope": "declared",
        "on_parent_cancel": "continue",
        "uncommitted": "fail",
    }


def test_an_undo_is_bounded_where_nothing_is_said() -> None:
    assert dict(DEFAULT_UNDO_OPTIONS) == {
        "start_to_close_timeout": timedelta(seconds=30),
        "schedule_to_close_timeout": timedelta(hours=1),
        "retry_policy": RetryPolicy(
            initial_interval=timedelta(seconds=1),
            maximum_interval=timedelta(minutes=1),
            maximum_attempts=0,
        ),
    }


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"on_exausted": "stop"}, "on_exausted"),
        ({"undo_options": {"colour": 1, "shape": 2}}, "colour, shape"),
        ({"undo_options": {"cancellation_type": 1}}, "cancellation_type"),
        ({"triggers": ["node-failure", "whim"]}, "triggers"),
        ({"order": "dependency-graph"}, "order"),
        ({"on_exhausted": "ask"}, "on_exhausted"),
        ({"uncommitted": "seal"}, "uncommitted"),
        ({"max_parallel": 0}, "max_parallel"),
        ({"total_timeout": timedelta(0)}, "total_timeout"),
        ({"total_timeout": timedelta(seconds=-1)}, "total_timeout"),
    ],
)
def test_what_is_wrong_is_refused_by_name(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        CompensationPolicy(**fields)


NOT_YET = [
    ("on_exhausted", "hold"),
    ("on_parent_cancel", "pause"),
    ("on_parent_cancel", "manual"),
    ("approval_scope", "all"),
]


@pytest.mark.parametrize(("name", "value"), NOT_YET)
def test_what_is_not_honoured_yet_is_refused_and_not_ignored(name: str, value: str) -> None:
    with pytest.raises(ValidationError, match="not honoured yet") as refusal:
        CompensationPolicy(**{name: value})  # type: ignore[arg-type]
    assert f"{name}={value!r}" in str(refusal.value)


def test_everything_not_honoured_is_named_at_once() -> None:
    with pytest.raises(ValidationError) as refusal:
        CompensationPolicy(**dict(NOT_YET))  # type: ignore[arg-type]
    [error] = refusal.value.errors()
    assert all(f"{name}={value!r}" in error["msg"] for name, value in dict(NOT_YET).items())


def test_several_faults_are_named_at_once() -> None:
    with pytest.raises(ValidationError) as refusal:
        CompensationPolicy(
            colour=1,  # type: ignore[call-arg]
            undo_options={"shape": 1},
            max_parallel=-1,
        )
    assert {e["loc"][0] for e in refusal.value.errors()} == {
        "colour",
        "undo_options",
        "max_parallel",
    }


def test_what_is_not_honoured_is_named_beside_other_faults() -> None:
    with pytest.raises(ValidationError) as refusal:
        CompensationPolicy(on_exhausted="hold", colour=1)  # type: ignore[call-arg]
    assert "colour" in str(refusal.value)
    assert "on_exhausted='hold'" in str(refusal.value)


@pytest.mark.parametrize(
    "options",
    [
        {"start_to_close_timeout": 30},
        {"retry_policy": 3},
        {"task_queue": 7},
        {"start_to_close_timeout": None, "schedule_to_close_timeout": None},
    ],
    ids=repr,
)
def test_an_undo_option_that_would_break_the_unwind_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CompensationPolicy(undo_options=options)


def test_every_known_undo_option_is_taken() -> None:
    options: dict[str, Any] = {
        "task_queue": "undos",
        "schedule_to_close_timeout": timedelta(hours=2),
        "schedule_to_start_timeout": timedelta(minutes=1),
        "start_to_close_timeout": timedelta(seconds=3),
        "heartbeat_timeout": timedelta(seconds=1),
        "retry_policy": RetryPolicy(maximum_attempts=3),
        "versioning_intent": None,
        "priority": None,
    }
    assert set(options) == UNDO_OPTION_NAMES
    assert dict(CompensationPolicy(undo_options=options).undo_options) == options


def test_a_policy_is_frozen() -> None:
    policy = CompensationPolicy()
    with pytest.raises(ValidationError, match="frozen"):
        policy.uncommitted = "allow"


def test_a_policy_is_frozen_all_the_way_down() -> None:
    policy = CompensationPolicy(undo_options={"task_queue": "undos"})
    with pytest.raises(TypeError):
        policy.undo_options["task_queue"] = "elsewhere"  # type: ignore[index]
