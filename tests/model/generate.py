"""Hypothesis strategies for programs."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.model import program as p

FEATURES = frozenset({"child", "continue", "handler", "join", "unit"})
"""What programs may use."""


def often(usual: str, others: Sequence[str], share: int) -> st.SearchStrategy[str]:
    """The usual value, and ``share`` times in ten another one."""
    return st.integers(0, 9).flatmap(
        lambda n: st.sampled_from(list(others)) if n >= 10 - share else st.just(usual)
    )


acts = st.builds(
    p.Act,
    kind=st.sampled_from((*p.KINDS, "ship", "ship", "bill")),
    outcome=often("ok", p.OUTCOMES[1:4], 2) | often("ok", p.OUTCOMES[4:], 1),
    on_cancel=st.sampled_from(p.ON_CANCEL),
    undo=often("ok", p.UNDOS[1:], 2),
    touch=st.booleans(),
)
commits = st.builds(
    p.Commit,
    name=st.sampled_from(p.COMMITTERS),
    outcome=often("ok", ("raise_before", "raise_after"), 3),
    on_cancel=st.sampled_from(p.ON_CANCEL),
)
leaves: st.SearchStrategy[p.Node] = st.integers(0, 19).flatmap(
    lambda n: (
        acts
        if n < 11
        else commits
        if n < 14
        else (
            st.builds(p.Note),
            st.builds(p.Raise, error=often("Stop", ("Limit",), 2)),
            st.builds(p.Revert, back=st.integers(0, 2)),
            st.builds(p.Revert, back=st.integers(0, 2)),
            st.builds(p.Compensate, kind=st.none() | st.sampled_from(p.KINDS)),
            st.builds(p.Raise) | st.builds(p.Hang),
        )[n - 14]
    )
)
calls: st.SearchStrategy[p.Node] = st.one_of(acts, acts, commits, st.builds(p.Note))


def bodies(node: st.SearchStrategy[p.Node], most: int = 3) -> st.SearchStrategy[tuple[p.Node, ...]]:
    return st.lists(node, min_size=1, max_size=most).map(tuple)


def stories(node: st.SearchStrategy[p.Node]) -> st.SearchStrategy[tuple[p.Node, ...]]:
    """Bodies in which what was done is soon committed, in doubt about that, or undone."""
    committed = st.sampled_from(p.COMMITTERS).flatmap(
        lambda name: st.tuples(
            st.builds(p.Act, kind=st.just(name), undo=often("ok", p.UNDOS[1:], 2)),
            st.builds(
                p.Try,
                body=st.builds(
                    p.Commit,
                    name=st.just(name),
                    outcome=often("ok", ("raise_before", "raise_after", "lost_after"), 5),
                ).map(lambda commit: (commit,)),
            ),
        )
    )
    overlapping = st.builds(
        p.Fan,
        how=st.just("gather"),
        branches=st.lists(acts, min_size=2, max_size=3).map(
            lambda found: tuple((act,) for act in found)
        ),
    ).map(lambda fan: (fan,))
    ends: st.SearchStrategy[tuple[p.Node, ...]] = st.sampled_from(
        ((p.Raise(),), (p.Raise(),), (p.Hang(),), ())
    )
    middle = st.one_of(committed, overlapping, bodies(node, 2))
    return st.tuples(bodies(node, 2), middle, ends).map(
        lambda parts: parts[0] + parts[1] + parts[2]
    )


def children(node: st.SearchStrategy[p.Node]) -> st.SearchStrategy[p.Child]:
    # A child begins with a call, so that it is seen to start before anything happens to it.
    body = st.tuples(calls, bodies(node)).map(lambda pair: (pair[0], *pair[1]))
    undo = often("ok", p.UNDOS[1:], 2)
    return st.builds(p.Child, body=body, declared=st.booleans(), undo=undo)


def plain(depth: int) -> st.SearchStrategy[p.Node]:
    """Nodes whose cancel runs no code: what a TaskGroup holds, which cancels in any order."""
    if depth == 0:
        return calls
    inner = plain(depth - 1)
    return calls | st.builds(p.Try, body=bodies(inner), handler=bodies(inner))


def nodes(depth: int) -> st.SearchStrategy[p.Node]:
    if depth == 0:
        return leaves
    inner = nodes(depth - 1)
    body = bodies(inner)
    fans = st.builds(
        p.Fan,
        how=st.sampled_from(("gather", "join") if "join" in FEATURES else ("gather",)),
        branches=st.lists(body, min_size=2, max_size=3).map(tuple),
    )
    groups = st.builds(
        p.Fan,
        how=st.just("group"),
        branches=st.lists(bodies(plain(depth - 1)), min_size=2, max_size=3).map(tuple),
    )
    options: list[st.SearchStrategy[p.Node]] = [
        leaves,
        leaves,
        st.builds(p.Try, body=body, handler=body),
        st.builds(p.If, then=body, other=body),
        st.builds(p.Loop, times=st.integers(1, 3), body=bodies(inner, 2)),
        fans,
        groups,
        st.builds(p.Limit, body=body),
    ]
    if "child" in FEATURES:
        options.append(children(inner))
    if "unit" in FEATURES:
        options += [st.builds(p.Unit, body=body, seal=st.booleans())] * 2
    return st.one_of(options)


EVENTS = ("cancel", "cancel", "cancel", "expire")
HANDLERS = ("signal", "update", "update") if "handler" in FEATURES else ()

events = st.builds(
    p.Event,
    kind=st.sampled_from(EVENTS + HANDLERS),
    at=st.integers(0, 6),
    which=st.integers(0, 1),
    together=st.sampled_from((True, True, False)),
)


def programs() -> st.SearchStrategy[p.Program]:
    main = bodies(nodes(2), 5) | stories(nodes(1)) | stories(leaves)
    further = st.lists(main, max_size=2).map(tuple) if "continue" in FEATURES else st.just(())
    return st.builds(
        p.Program,
        main=main,
        further=st.integers(0, 3).flatmap(lambda n: further if n == 0 else st.just(())),
        handlers=st.lists(bodies(nodes(1)), max_size=2).map(tuple),
        choices=st.lists(st.integers(0, 5), max_size=6).map(tuple),
        events=st.lists(events, max_size=3).map(tuple),
        policy=often("default", p.POLICIES[1:], 3),
    )
