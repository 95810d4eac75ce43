"""What the workflow and its activities say to each other."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Order(_Model):
    """What a customer wants.

    Attributes:
        id: The order's number; the workflow's id is derived from it.
        sku: What is bought.
        quantity: How many of it.
        cents: What they cost together.
        card: The card that pays.
        address: Where they go.
    """

    id: str
    sku: str
    quantity: int
    cents: int
    card: str = "4242 4242"
    address: str = "12 Rope Walk, Bristol"


class Reservation(_Model):
    """Goods that the warehouse has put aside."""

    order_id: str
    sku: str
    quantity: int


class Payment(_Model):
    """Money that the bank has taken."""

    id: int
    order_id: str
    cents: int


class Shipment(_Model):
    """A parcel that the carrier has accepted."""

    tracking: str
    order_id: str


class Receipt(_Model):
    """What the customer gets when all is done."""

    order_id: str
    paid_cents: int
    tracking: str
