"""The outside world's memory: an SQLite file that outlives every worker.

What makes a repeat harmless is here and is what any good API does: each request carries an
idempotency key, the key is unique, and one transaction records the key together with the effect.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

Answer = TypeVar("Answer", bound=BaseModel)

_BUSY_SECONDS = 10
"""How long a connection waits while another process writes."""

_SCHEMA = (
    # What was asked. The primary key is what lets a key be served only once.
    "CREATE TABLE requests (key TEXT PRIMARY KEY, kind TEXT, order_id TEXT, answer TEXT,"
    " asked INTEGER DEFAULT 1)",
    # What was done. No constraint here: this is how one would notice a second time.
    "CREATE TABLE effects (id INTEGER PRIMARY KEY, key TEXT)",
    "CREATE TABLE stock (sku TEXT PRIMARY KEY, on_hand INTEGER CHECK (on_hand >= 0))",
    "CREATE TABLE payments (id INTEGER PRIMARY KEY, order_id TEXT, cents INTEGER,"
    " refunded INTEGER DEFAULT 0)",
    "CREATE TABLE shipments (id INTEGER PRIMARY KEY, order_id TEXT, address TEXT)",
    "CREATE TABLE delays (kind TEXT PRIMARY KEY, seconds REAL)",
    "INSERT INTO stock VALUES ('teapot', 10), ('kettle', 5)",
)


class Snapshot(BaseModel, frozen=True):
    """The world at one moment.

    Attributes:
        stock: How many of each article are on the shelf.
        taken_cents: Money taken and not given back.
        shipments: How many parcels were sent.
    """

    stock: dict[str, int]
    taken_cents: int
    shipments: int


class Tally(NamedTuple):
    """How often something was asked for, with how many keys, and how often it was done."""

    requests: int
    keys: int
    effects: int


class Books:
    """The file; each call is a connection and a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.transaction() as db:
            if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                for statement in _SCHEMA:
                    db.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Do several things or none of them."""
        with closing(sqlite3.connect(self._path, _BUSY_SECONDS, isolation_level=None)) as db, db:
            db.execute("BEGIN IMMEDIATE")
            yield db

    def once(
        self,
        key: str,
        kind: str,
        order_id: str,
        answer_type: type[Answer],
        effect: Callable[[sqlite3.Connection], Answer],
    ) -> Answer:
        """Serve a request, unless its key was served before; then repeat the earlier answer.

        Args:
            key: The idempotency key that came with the request.
            kind: What is asked for.
            order_id: For which order.
            answer_type: What the answer is.
            effect: Does it. If it raises, nothing was done and the key is free again.
        """
        with self.transaction() as db:
            row = db.execute("SELECT answer FROM requests WHERE key = ?", (key,)).fetchone()
            if row is not None:
                db.execute("UPDATE requests SET asked = asked + 1 WHERE key = ?", (key,))
                answer = answer_type.model_validate_json(row[0])
            else:
                answer = effect(db)
                db.execute("INSERT INTO effects (key) VALUES (?)", (key,))
                db.execute(
                    "INSERT INTO requests (key, kind, order_id, answer) VALUES (?, ?, ?, ?)",
                    (key, kind, order_id, answer.model_dump_json()),
                )
        self._answer_travels(kind)
        return answer

    def delay(self, kind: str, seconds: float) -> None:
        """Make the answers to a kind of request take so long, also those already under way."""
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO delays VALUES (?, ?)", (kind, seconds))

    def snapshot(self) -> Snapshot:
        """Look at the world as it is now."""
        with self.transaction() as db:
            stock = dict(db.execute("SELECT sku, on_hand FROM stock ORDER BY sku").fetchall())
            taken = db.execute("SELECT ifnull(sum(cents - refunded), 0) FROM payments").fetchone()
            sent = db.execute("SELECT count(*) FROM shipments").fetchone()
        return Snapshot(stock=stock, taken_cents=taken[0], shipments=sent[0])

    def tally(self, order_id: str, kind: str) -> Tally:
        """Count what an order asked for of one kind."""
        with self.transaction() as db:
            row = db.execute(
                "SELECT ifnull(sum(asked), 0), count(*), ifnull(sum((SELECT count(*) FROM effects"
                " WHERE effects.key = requests.key)), 0)"
                " FROM requests WHERE order_id = ? AND kind = ?",
                (order_id, kind),
            ).fetchone()
        return Tally(*row)

    def effects_by_key(self) -> dict[str, int]:
        """Count, for each idempotency key, how often something was done under it."""
        with self.transaction() as db:
            rows = db.execute(
                "SELECT key, sum(n) FROM (SELECT key, 0 AS n FROM requests"
                " UNION ALL SELECT key, 1 FROM effects) GROUP BY key"
            ).fetchall()
        return dict(rows)

    def _answer_travels(self, kind: str) -> None:
        started = time.monotonic()
        while time.monotonic() - started < self._delay(kind):
            time.sleep(0.05)

    def _delay(self, kind: str) -> float:
        with self.transaction() as db:
            row = db.execute("SELECT seconds FROM delays WHERE kind = ?", (kind,)).fetchone()
        return 0.0 if row is None else float(row[0])
