"""The outside world: a warehouse, a bank and a carrier.

They stand for systems that are not yours: they know nothing of Temporal, and they take an
idempotency key with every request. ``python -m samples.order.world`` shows how things stand;
``python -m samples.order.world --slow charge=20`` makes answers take their time, so that there is
time to cancel an order or to kill a worker.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
from pathlib import Path

from samples.order.books import Books
from samples.order.models import Order, Payment, Reservation, Shipment

EXPIRED = "0000 0000"
"""A card that the bank declines."""

NOWHERE = "Atlantis"
"""An address that the carrier does not serve."""


class RefusedError(Exception):
    """The answer is no: nothing was done, and asking again will not help."""


class OutOfStockError(RefusedError):
    """The warehouse has too few."""


class CardDeclinedError(RefusedError):
    """The bank does not accept the card."""


class CarrierRefusedError(RefusedError):
    """The carrier does not go there."""


class World:
    """The three systems, and the books that they share."""

    def __init__(self, path: Path) -> None:
        self.books = Books(path)

    @classmethod
    def from_env(cls) -> World:
        """Open the file that ``ORDER_WORLD`` names, by default ``.demo/world.db``."""
        return cls(Path(os.environ.get("ORDER_WORLD", ".demo/world.db")))

    def reserve(self, key: str, order: Order) -> Reservation:
        """Put goods aside.

        Raises:
            OutOfStockError: There are too few, and none were put aside.
        """

        def effect(db: sqlite3.Connection) -> Reservation:
            found = db.execute(
                "UPDATE stock SET on_hand = on_hand - ?1 WHERE sku = ?2 AND on_hand >= ?1",
                (order.quantity, order.sku),
            )
            if found.rowcount == 0:
                raise OutOfStockError(f"fewer than {order.quantity} of {order.sku} on the shelf")
            return Reservation(order_id=order.id, sku=order.sku, quantity=order.quantity)

        return self.books.once(key, "reserve", order.id, Reservation, effect)

    def release(self, key: str, reservation: Reservation) -> None:
        """Put reserved goods back on the shelf."""

        def effect(db: sqlite3.Connection) -> Reservation:
            db.execute(
                "UPDATE stock SET on_hand = on_hand + ? WHERE sku = ?",
                (reservation.quantity, reservation.sku),
            )
            return reservation

        self.books.once(key, "release", reservation.order_id, Reservation, effect)

    def charge(self, key: str, order: Order) -> Payment:
        """Take money.

        Raises:
            CardDeclinedError: The card is not accepted, and nothing was taken.
        """

        def effect(db: sqlite3.Connection) -> Payment:
            if order.card == EXPIRED:
                raise CardDeclinedError("the card has expired")
            row = db.execute(
                "INSERT INTO payments (order_id, cents) VALUES (?, ?)", (order.id, order.cents)
            )
            return Payment(id=row.lastrowid or 0, order_id=order.id, cents=order.cents)

        return self.books.once(key, "charge", order.id, Payment, effect)

    def refund(self, key: str, payment: Payment) -> None:
        """Give money back."""

        def effect(db: sqlite3.Connection) -> Payment:
            db.execute(
                "UPDATE payments SET refunded = refunded + ? WHERE id = ?",
                (payment.cents, payment.id),
            )
            return payment

        self.books.once(key, "refund", payment.order_id, Payment, effect)

    def ship(self, key: str, order: Order) -> Shipment:
        """Hand a parcel to the carrier.

        Raises:
            CarrierRefusedError: The address is not served, and the parcel was not taken.
        """

        def effect(db: sqlite3.Connection) -> Shipment:
            if order.address == NOWHERE:
                raise CarrierRefusedError(f"no service to {order.address}")
            row = db.execute(
                "INSERT INTO shipments (order_id, address) VALUES (?, ?)", (order.id, order.address)
            )
            return Shipment(order_id=order.id, tracking=f"PARCEL-{row.lastrowid}")

        return self.books.once(key, "ship", order.id, Shipment, effect)


def main() -> None:
    """Show the world, or make its answers slow."""
    parser = argparse.ArgumentParser(prog="python -m samples.order.world")
    parser.add_argument(
        "--slow",
        metavar="KIND=SECONDS",
        help="how long answers to reserve, release, charge, refund or ship take from now on",
    )
    slow: str | None = parser.parse_args().slow
    world = World.from_env()
    if slow is not None:
        kind, _, seconds = slow.partition("=")
        world.books.delay(kind, float(seconds or 0))
    now = world.books.snapshot()
    for sku, count in now.stock.items():
        print(f"{sku + 's on the shelf':24}{count:>8}")
    print(f"{'money taken':24}{now.taken_cents / 100:>8.2f}")
    print(f"{'parcels sent':24}{now.shipments:>8}")


if __name__ == "__main__":
    main()
