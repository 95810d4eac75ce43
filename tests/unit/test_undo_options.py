"""The options of an undo's call: what breaks an unwind is refused where it is written."""

from __future__ import annotations

import copy
import json
import pickle
from datetime import timedelta
from typing import Any

import pytest
from temporalio.common import Priority, RetryPolicy
from temporalio.workflow import VersioningIntent

from agboss_temporal import CompensationPolicy
from agboss_temporal.core.contract import UNDO_OPTION_NAMES
from agboss_temporal.undo_options import (
    DEFAULT_UNDO_OPTIONS,
    FrozenOptions,
    from_json,
    merged,
    to_json,
    wrong_values,
)

SECOND = timedelta(seconds=1)
GOOD: dict[str, Any] = {
    "task_queue": "undos",
    "schedule_to_close_timeout": SECOND,
    "schedule_to_start_timeout": SECOND,
    "start_to_close_timeout": SECOND,
    "heartbeat_timeout": SECOND,
    "retry_policy": RetryPolicy(maximum_attempts=3),
    "versioning_intent": VersioningIntent.COMPATIBLE,
    "priority": Priority(priority_key=2),
}


@pytest.mark.parametrize("name", sorted(UNDO_OPTION_NAMES))
def test_each_option_has_one_type(name: str) -> None:
    assert set(GOOD) == UNDO_OPTION_NAMES
    assert wrong_values({name: GOOD[name]}) == []
    assert wrong_values({name: None}) == []
    [problem] = wrong_values({name: 3})
    assert f"{name}=3" in problem


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start_to_close_timeout": timedelta(0)}, "longer than nothing"),
        ({"heartbeat_timeout": -SECOND}, "longer than nothing"),
        ({"task_queue": ""}, "name of a queue"),
        ({"retry_policy": RetryPolicy(backoff_coefficient=0.5)}, "Backoff coefficient"),
        ({"retry_policy": RetryPolicy(maximum_attempts=-1)}, "attempts"),
        ({"retry_policy": RetryPolicy(initial_interval=5)}, ""),  # type: ignore[arg-type]
        ({"start_to_close_timeout": None, "schedule_to_close_timeout": None}, "must bound it"),
    ],
    ids=repr,
)
def test_what_the_sdk_or_the_server_would_refuse_is_told(
    options: dict[str, Any], says: str
) -> None:
    [problem] = wrong_values(options)
    assert says in problem


def test_all_wrong_values_are_told() -> None:
    assert len(wrong_values({"task_queue": 1, "priority": 1, "colour": 1})) == 2


def test_the_last_layer_wins_and_defaults_fill_in() -> None:
    found = merged({"task_queue": "a"}, {"retry_policy": None}, {"task_queue": "b"})
    assert found == {**DEFAULT_UNDO_OPTIONS, "task_queue": "b", "retry_policy": None}


def test_none_takes_away_no_queue_and_no_priority() -> None:
    layer = {"task_queue": "a", "priority": GOOD["priority"]}
    found = merged(layer, {"task_queue": None}, {"priority": None})
    assert found == {**DEFAULT_UNDO_OPTIONS, **layer}


def test_layers_that_each_take_one_bound_away_still_leave_one() -> None:
    found = merged({"start_to_close_timeout": None}, {"schedule_to_close_timeout": None})
    assert found["start_to_close_timeout"] is None
    assert found["schedule_to_close_timeout"] == timedelta(hours=1)


def test_frozen_options_are_a_mapping_like_any_other() -> None:
    options = FrozenOptions({"task_queue": "undos"})
    assert options == {"task_queue": "undos"} == dict(options)
    assert options != FrozenOptions({})
    assert copy.deepcopy(options) == pickle.loads(pickle.dumps(options)) == options
    assert repr(options) == "{'task_queue': 'undos'}"


def test_a_policy_can_be_compared_copied_and_dumped() -> None:
    policy = CompensationPolicy(undo_options={"task_queue": "undos"})
    same = CompensationPolicy(undo_options={"task_queue": "undos"})
    assert policy == same == copy.deepcopy(policy) == pickle.loads(pickle.dumps(policy))
    assert policy.model_dump()["undo_options"] == {"task_queue": "undos"}
    assert policy != CompensationPolicy()
    given = {"task_queue": "undos"}
    kept = CompensationPolicy(undo_options=given)
    given["task_queue"] = "elsewhere"
    assert kept == policy


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"task_queue": "undos", "heartbeat_timeout": timedelta(milliseconds=1500)},
        {"schedule_to_close_timeout": None, "priority": None},
        {"priority": Priority(priority_key=2, fairness_key="a", fairness_weight=1.5)},
        {"versioning_intent": VersioningIntent.COMPATIBLE},
        {
            "retry_policy": RetryPolicy(
                initial_interval=timedelta(seconds=3),
                backoff_coefficient=1.5,
                maximum_interval=timedelta(minutes=2),
                maximum_attempts=7,
                non_retryable_error_types=["Gone"],
            )
        },
        {"retry_policy": RetryPolicy()},
    ],
    ids=repr,
)
def test_options_come_back_from_json_as_they_were(options: dict[str, Any]) -> None:
    written = json.loads(json.dumps(to_json(options)))
    assert from_json(written) == options


def test_options_of_a_later_version_are_passed_over() -> None:
    assert from_json({"task_queue": "undos", "colour": 1}) == {"task_queue": "undos"}
