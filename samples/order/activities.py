"""What an order does in the outside world, and what undoes it.

Each `action` names its undo once, here, beside the code that has the effect. Both hold until the
parcel is with the carrier: ``ship_order`` is the point of no return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from agboss_temporal import action, idempotency_key
from samples.order.models import Order, Payment, Reservation, Shipment
from samples.order.world import (
    CardDeclinedError,
    CarrierRefusedError,
    OutOfStockError,
    RefusedError,
    World,
)


@activity.defn
def release_stock(reservation: Reservation) -> None:
    """Undo `reserve_stock`: it is given what that returned."""
    World.from_env().release(idempotency_key(), reservation)


@activity.defn
def refund_card(payment: Payment) -> None:
    """Undo `charge_card`: it is given what that returned."""
    World.from_env().refund(idempotency_key(), payment)


@action(no_effect_errors=[CarrierRefusedError])
@activity.defn
def ship_order(order: Order) -> Shipment:
    """Hand the parcel over. From then on the order stands."""
    with _refusals():
        return World.from_env().ship(idempotency_key(), order)


@action(
    compensate_with=release_stock,
    committed_by=ship_order,
    no_effect_errors=[OutOfStockError],
)
@activity.defn
def reserve_stock(order: Order) -> Reservation:
    """Put the goods aside."""
    with _refusals():
        return World.from_env().reserve(idempotency_key(), order)


@action(
    compensate_with=refund_card,
    committed_by=ship_order,
    no_effect_errors=[CardDeclinedError],
)
@activity.defn
def charge_card(order: Order) -> Payment:
    """Take the money."""
    with _refusals():
        return World.from_env().charge(idempotency_key(), order)


@contextmanager
def _refusals() -> Iterator[None]:
    """Tell Temporal that a refusal is an answer, not an outage: no retry, no alarm in the log."""
    try:
        yield
    except RefusedError as err:
        raise ApplicationError(
            str(err),
            type=type(err).__name__,
            non_retryable=True,
            category=ApplicationErrorCategory.BENIGN,
        ) from err


ACTIVITIES: Final[Sequence[Callable[..., Any]]] = (
    reserve_stock,
    release_stock,
    charge_card,
    refund_card,
    ship_order,
)
"""What a worker registers."""
