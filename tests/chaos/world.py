"""The outside world: one SQLite file that outlives every worker."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["do", "undo", "commit"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS attempts (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id TEXT NOT NULL, activity_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    key TEXT NOT NULL, reverses TEXT, attempt INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS effects (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id TEXT NOT NULL, activity_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE, reverses TEXT UNIQUE, item TEXT NOT NULL
);
"""


class TooLateError(Exception):
    """The effect was reversed before it took place; it never will."""


@dataclass(frozen=True)
class Request:
    """What an attempt asks of the world.

    Attributes:
        order_id: The run.
        activity_id: The call, as history names it.
        name: Name of the activity.
        kind: What it is to the order.
        key: Its idempotency key.
        reverses: For an undo, the idempotency key of the action.
    """

    order_id: str
    activity_id: str
    name: str
    kind: Kind
    key: str
    reverses: str | None = None


@dataclass(frozen=True)
class Effect(Request):
    """Something that really happened, once; ``n`` is its place in time."""

    item: str = ""
    n: int = 0


@dataclass(frozen=True)
class Attempt(Request):
    """An attempt that was started; whether it got anywhere is another question."""

    attempt: int = 1


class World:
    """Takes effect at most once for each key, as a system with idempotency keys does."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def note_attempt(self, request: Request, attempt: int) -> None:
        """Count an attempt."""
        self._db.execute(
            "INSERT INTO attempts (order_id, activity_id, name, kind, key, reverses, attempt) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*_columns(request), attempt),
        )

    def take_effect(self, request: Request, item: str) -> None:
        """Do it, unless it has been done.

        An undo takes effect also where nothing was done, so that an action that is still on its
        way comes too late.

        Raises:
            TooLateError: It was reversed already.
        """
        with self._transaction() as db:
            late = db.execute("SELECT 1 FROM effects WHERE reverses = ?", (request.key,)).fetchone()
            done = db.execute("SELECT 1 FROM effects WHERE key = ?", (request.key,)).fetchone()
            if late and not done:
                raise TooLateError(request.key)
            if not done:
                db.execute(
                    "INSERT INTO effects (order_id, activity_id, name, kind, key, reverses, item) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*_columns(request), item),
                )

    def effects(self, order_id: str) -> list[Effect]:
        """List what happened for an order, in order."""
        rows = self._db.execute(
            "SELECT order_id, activity_id, name, kind, key, reverses, item, n FROM effects "
            "WHERE order_id = ? ORDER BY n",
            (order_id,),
        )
        return [Effect(*row) for row in rows]

    def attempts(self, order_id: str) -> list[Attempt]:
        """List what was tried for an order, in order."""
        rows = self._db.execute(
            "SELECT order_id, activity_id, name, kind, key, reverses, attempt FROM attempts "
            "WHERE order_id = ? ORDER BY n",
            (order_id,),
        )
        return [Attempt(*row) for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def _columns(request: Request) -> tuple[str | None, ...]:
    return (
        request.order_id,
        request.activity_id,
        request.name,
        request.kind,
        request.key,
        request.reverses,
    )
