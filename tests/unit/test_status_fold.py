"""The status of a plan is a pure fold of its verdicts, never rounded up."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.core.plan import fold_status
from agboss_temporal.core.report import VERDICTS, Status
from tests.unit.strategies import verdicts as verdict

KNOWN = ["undone", "failed", "skipped", "denied", "not_run", "irreversible"]


def expected(plan: tuple[str | None, ...], active: bool) -> str:
    if len(plan) == 0:
        return {True: "pending", False: "none"}[active]
    if active or any(v is None for v in plan):
        return "running"
    done = sum(v == "undone" for v in plan)
    capped = any(v == "irreversible" for v in plan)
    if done == 0:
        return "failed"
    return "completed" if done == len(plan) and not capped else "partial"


def test_every_plan_of_up_to_four_entries() -> None:
    for length in range(5):
        for plan in product([*KNOWN, None], repeat=length):
            for active in (False, True):
                assert fold_status(plan, active=active) == expected(plan, active), (plan, active)


@pytest.mark.parametrize(
    ("plan", "status"),
    [
        ([], "none"),
        (["undone"], "completed"),
        (["undone", "undone"], "completed"),
        (["undone", "irreversible"], "partial"),
        (["irreversible", "undone", "undone"], "partial"),
        (["undone", "failed"], "partial"),
        (["undone", "not_run"], "partial"),
        (["failed"], "failed"),
        (["failed", "irreversible"], "failed"),
        (["skipped", "denied", "not_run"], "failed"),
        (["undone", None], "running"),
    ],
)
def test_what_the_design_says_in_words(plan: list[str | None], status: str) -> None:
    assert fold_status(plan) == status


both_orders = st.lists(verdict, max_size=12).flatmap(
    lambda plan: st.tuples(st.just(plan), st.permutations(plan))
)


@given(both_orders, st.booleans())
def test_it_reads_once_ignores_order_and_knows_only_its_words(
    plans: tuple[list[str | None], list[str | None]], active: bool
) -> None:
    plan, shuffled = plans
    status = fold_status(iter(plan), active=active)
    assert status == fold_status(shuffled, active=active)
    assert status in get_args(Status)


@given(st.lists(verdict.filter(lambda v: v != "undone"), max_size=8).map(lambda v: ["undone", *v]))
def test_completed_means_that_nothing_is_left(plan: list[str | None]) -> None:
    assert (fold_status(plan) == "completed") == (len(plan) == 1)


def test_the_words_are_those_of_the_contract_with_users() -> None:
    assert set(KNOWN) == VERDICTS
    assert set(get_args(Status)) == {
        "none",
        "pending",
        "running",
        "completed",
        "partial",
        "failed",
        "manual",
    }
