"""The outside world: a warehouse, a bank and a carrier, in one SQLite file.

It stands for systems that are not yours: it outlives every worker, it knows nothing of Temporal,
and like any good API it takes an idempotency key with each request. A key that it has seen before
gets the earlier answer and changes nothing, which a unique constraint guarantees.

``python -m samples.order.world`` shows it; ``--slow charge=20`` makes an answer take its time.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel

from samples.order.models import Order, Payment, Reservation, Shipment

NOWHERE = "Atlantis"
"""An address that the carrier does not serve."""

EXPIRED = "0000 0000"
"""A card that the bank declines."""

KINDS = ("reserve", "release", "charge", "refund", "ship")
"""The kinds of requests that the world takes."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (  -- what was asked: a key is answered anew only once
    key TEXT PRIMARY KEY, kind TEXT, order_id TEXT, answer TEXT, asked INTEGER DEFAULT 1);
CREATE TABLE IF NOT EXISTS effects (   -- what was really done, for the books
    id INTEGER PRIMARY KEY, key TEXT, kind TEXT, order_id TEXT);
CREATE TABLE IF NOT EXISTS stock (sku TEXT PRIMARY KEY, on_hand INTEGER CHECK (on_hand >= 0));
CREATE TABLE IF NOT EXISTS payments (
    id INTEGER PRIMARY KEY, order_id TEXT, cents INTEGER, refunded INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS shipments (id INTEGER PRIMARY KEY, order_id TEXT, address TEXT);
CREATE TABLE IF NOT EXISTS delays (kind TEXT PRIMARY KEY, seconds REAL);
INSERT OR IGNORE INTO stock VALUES ('teapot', 10), ('kettle', 3);
"""


class Refused(Exception):
    """The world says no, has done nothing, and will say no again."""


class OutOfStock(Refused):
    """The warehouse has too little of it."""


class CardDeclined(Refused):
    """The bank does not accept the card."""


class CarrierRefused(Refused):
    """The carrier does not go there."""


class Snapshot(BaseModel, frozen=True):
    """The world at one moment: what is in stock, what was paid and not refunded, what was sent."""

    stock: dict[str, int]
    taken_cents: int
    shipments: int


class World:
    """Access to the file; each call is a connection and a transaction of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._transaction() as db:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)

    @classmethod
    def from_env(cls) -> World:
        """Open the file that ``ORDER_WORLD`` names, by default ``.demo/world.db``."""
        return cls(Path(os.environ.get("ORDER_WORLD", ".demo/world.db")))

    def reserve(self, key: str, order: Order) -> Reservation:
        """Put goods aside.

        Raises:
            OutOfStock: There are too few; nothing is put aside.
        """

        def effect(db: sqlite3.Connection) -> Reservation:
            taken = db.execute(
                "UPDATE stock SET on_hand = on_hand - ? WHERE sku = ? AND on_hand >= ?",
                (order.quantity, order.sku, order.quantity),
            )
            if taken.rowcount == 0:
                raise OutOfStock(f"fewer than {order.quantity} of {order.sku} in stock")
            return Reservation(order_id=order.id, sku=order.sku, quantity=order.quantity)

        return self._once(key, "reserve", order.id, Reservation, effect)

    def release(self, key: str, reservation: Reservation) -> None:
        """Put reserved goods back on the shelf."""

        def effect(db: sqlite3.Connection) -> Reservation:
            db.execute(
                "UPDATE stock SET on_hand = on_hand + ? WHERE sku = ?",
                (reservation.quantity, reservation.sku),
            )
            return reservation

        self._once(key, "release", reservation.order_id, Reservation, effect)

    def charge(self, key: str, order: Order) -> Payment:
        """Take the money.

        Raises:
            CardDeclined: The card is not accepted; no money is taken.
        """

        def effect(db: sqlite3.Connection) -> Payment:
            if order.card == EXPIRED:
                raise CardDeclined(f"card {order.card} is expired")
            row = db.execute(
                "INSERT INTO payments (order_id, cents) VALUES (?, ?)", (order.id, order.cents)
            )
            return Payment(id=row.lastrowid or 0, order_id=order.id, cents=order.cents)

        return self._once(key, "charge", order.id, Payment, effect)

    def refund(self, key: str, payment: Payment) -> None:
        """Give the money back."""

        def effect(db: sqlite3.Connection) -> Payment:
            db.execute(
                "UPDATE payments SET refunded = refunded + ? WHERE id = ?",
                (payment.cents, payment.id),
            )
            return payment

        self._once(key, "refund", payment.order_id, Payment, effect)

    def ship(self, key: str, order: Order) -> Shipment:
        """Hand the parcel to the carrier.

        Raises:
            CarrierRefused: The carrier does not serve the address; the parcel stays.
        """

        def effect(db: sqlite3.Connection) -> Shipment:
            if order.address == NOWHERE:
                raise CarrierRefused(f"nobody delivers to {order.address}")
            row = db.execute(
                "INSERT INTO shipments (order_id, address) VALUES (?, ?)", (order.id, order.address)
            )
            return Shipment(tracking=f"PARCEL-{row.lastrowid}", order_id=order.id)

        return self._once(key, "ship", order.id, Shipment, effect)

    def snapshot(self) -> Snapshot:
        """Look at the world as it is now."""
        with self._transaction() as db:
            stock = dict(db.execute("SELECT sku, on_hand FROM stock ORDER BY sku").fetchall())
            (taken,) = db.execute("SELECT ifnull(sum(cents - refunded), 0) FROM payments").fetchone()
            (shipments,) = db.execute("SELECT count(*) FROM shipments").fetchone()
        return Snapshot(stock=stock, taken_cents=taken, shipments=shipments)

    def asked(self, order_id: str, kind: str) -> int:
        """Count how often a request of an order was made, repeats included."""
        with self._transaction() as db:
            (count,) = db.execute(
                "SELECT ifnull(sum(asked), 0) FROM requests WHERE order_id = ? AND kind = ?",
                (order_id, kind),
            ).fetchone()
        return int(count)

    def effects_by_key(self) -> dict[str, int]:
        """Count for each idempotency key how often something was really done under it."""
        with self._transaction() as db:
            return dict(
                db.execute(
                    "SELECT requests.key, count(effects.id) FROM requests"
                    " LEFT JOIN effects USING (key) GROUP BY requests.key"
                ).fetchall()
            )

    def delay(self, kind: str, seconds: float) -> None:
        """Let answers to this kind of request take so long, also those under way."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO delays VALUES (?, ?)", (kind, seconds))

    def _once[Answer: BaseModel](
        self,
        key: str,
        kind: str,
        order_id: str,
        answer_type: type[Answer],
        effect: Callable[[sqlite3.Connection], Answer],
    ) -> Answer:
        ...
