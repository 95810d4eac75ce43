"""One key for one effect: stable, different for all else, and never a guess."""

from __future__ import annotations

import contextvars
import multiprocessing
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agboss_temporal.exceptions import AgbossError, IdempotencyKeyError
from agboss_temporal.idempotency import (
    ActivityIdentity,
    IdentitySource,
    current,
    idempotency_key,
)

IDENTITY = ActivityIdentity(namespace="shop", workflow_id="order-1", key="9f-1", role="action")

texts = st.text(st.characters(codec="utf-8"), max_size=8)
parts = st.text(st.characters(codec="utf-8"), max_size=8)
identities = st.builds(
    ActivityIdentity,
    namespace=texts,
    workflow_id=texts,
    key=texts,
    role=st.sampled_from(["action", "undo", "committer"]),
)


def known(identity: ActivityIdentity) -> IdentitySource:
    return IdentitySource(lambda: identity)


@pytest.fixture(autouse=True)
def _outside() -> Iterator[None]:
    """Undo what a test sets, however it ends."""
    token = current.set(known(IDENTITY))
    current.reset(token)
    yield
    assert current.get(None) is None


def key_of(identity: ActivityIdentity, *args: Any, **options: Any) -> str:
    token = current.set(known(identity))
    try:
        return idempotency_key(*args, **options)
    finally:
        current.reset(token)


def outcome(_: Any = None) -> str:
    try:
        return idempotency_key()
    except IdempotencyKeyError as err:
        return type(err).__name__


def test_outside_an_activity_there_is_none() -> None:
    with pytest.raises(IdempotencyKeyError, match="CompensationPlugin") as refusal:
        idempotency_key()
    assert isinstance(refusal.value, AgbossError)


def test_an_unreadable_header_is_told_and_not_guessed_around() -> None:
    fault = "the compensation header is encoded and cannot be read here"
    with pytest.raises(IdempotencyKeyError, match=fault):
        key_of(replace(IDENTITY, fault=fault))


@given(identities, parts)
def test_it_is_a_uuid_and_always_the_same(identity: ActivityIdentity, part: str) -> None:
    key = key_of(identity, part)
    assert key == key_of(identity, part) == key_of(replace(identity), part)
    parsed = uuid.UUID(key)
    assert str(parsed) == key
    assert (parsed.version, parsed.variant) == (8, uuid.RFC_4122)


@given(st.lists(st.tuples(identities, parts), min_size=2, max_size=6, unique=True))
def test_it_differs_wherever_anything_differs(calls: list[tuple[ActivityIdentity, str]]) -> None:
    keys = [key_of(identity, part) for identity, part in calls]
    assert len(set(keys)) == len(keys)


def test_each_of_the_five_counts() -> None:
    variants = [
        key_of(IDENTITY),
        key_of(IDENTITY, "fee"),
        key_of(replace(IDENTITY, role="undo")),
        key_of(replace(IDENTITY, key="9f-2")),
        key_of(replace(IDENTITY, workflow_id="order-2")),
        key_of(replace(IDENTITY, namespace="other")),
    ]
    assert all(one != other for one, other in combinations(variants, 2))


def test_the_derivation_is_pinned_because_other_systems_remember_it() -> None:
    assert key_of(IDENTITY) == "931c0ce1-318d-8cae-8e62-da8ef6648c7b"
    assert key_of(IDENTITY, "fee") == "5df13de5-f2bb-8fe5-b39f-36e1d12842a1"


@given(identities, parts)
def test_an_undo_can_ask_for_the_key_of_its_action(identity: ActivityIdentity, part: str) -> None:
    undo, action = replace(identity, role="undo"), replace(identity, role="action")
    assert key_of(undo, part, role="action") == key_of(action, part)
    assert key_of(undo, part) == key_of(action, part, role="undo") != key_of(action, part)


def test_a_thread_pool_that_copies_the_context_has_it() -> None:
    expected = key_of(IDENTITY)
    token = current.set(known(IDENTITY))
    context = contextvars.copy_context()
    current.reset(token)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(context.run, idempotency_key).result() == expected


def test_a_fresh_thread_has_none() -> None:
    seen: list[str] = []
    token = current.set(known(IDENTITY))
    thread = threading.Thread(target=lambda: seen.append(outcome()))
    thread.start()
    thread.join()
    current.reset(token)
    assert seen == ["IdempotencyKeyError"]


def in_process(method: str) -> list[str]:
    """Ask in a process pool that an activity was the first to use, then another activity."""
    found = []
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        for key in ("9f-1", "9f-2"):
            token = current.set(known(replace(IDENTITY, key=key)))
            try:
                found.append(pool.submit(outcome).result())
            finally:
                current.reset(token)
    return found


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_pool_never_gives_the_key_of_another_activity() -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system does not fork")
    assert in_process("fork") == ["IdempotencyKeyError"] * 2


def test_a_spawned_process_pool_has_none() -> None:
    assert in_process("spawn") == ["IdempotencyKeyError"] * 2


def test_texts_that_run_together_alike_have_their_own_keys() -> None:
    one = replace(IDENTITY, namespace="a", workflow_id="b\0c", key="d")
    other = replace(IDENTITY, namespace="a\0b", workflow_id="c", key="d")
    assert key_of(one) != key_of(other)


def test_an_undo_of_nothing_known_has_its_own_key_only() -> None:
    lost = replace(IDENTITY, role="undo", undoes_nothing=True)
    assert key_of(lost) == key_of(replace(IDENTITY, role="undo"))
    with pytest.raises(IdempotencyKeyError, match="no action"):
        key_of(lost, role="action")
