"""Ledgers of runs, made by hand for the views."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import State
from agboss_temporal.core.ledger import CommitterInDoubt
from agboss_temporal.core.report import CompensationReport, EntryReport, UnwindReport
from agboss_temporal.core.run_ledger import (
    ChildRun,
    RunEnd,
    RunEntry,
    RunLedger,
    UndoCall,
    Unreadable,
    UnrecordedCall,
)

SEED = "5f3a9c01d2e4b687"
START = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)

HOSTILE = {
    "markup": "</text></svg><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'",
    "terminal": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x9b5n\r\nnext\ttab\x00",
    "direction": "pay\u202ednufer\u2066\u200b\u2028end",
    "hebrew": "החזר תשלום",
    "wide": "在庫を引き当てる",
    "marks": "z" + "\u0337\u0322" * 40,
    "halves": "\ud800x\udfff",
    "long": "very_long_name_of_an_activity_" * 400,
    "mermaid": 'a"]; click x call alert() %% #quot; `md` style x:#f00; end',
    "list": "1. one",
    "bullet": "- one",
    "empty": "",
}
"""Names that try to act on the reader."""


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def undo(event_id: int, name: str, seconds: float = 0, **more: Any) -> UndoCall:
    more.setdefault("outcome", "completed")
    more.setdefault("attempts", 1)
    more.setdefault("settled_event_id", event_id + 2)
    more.setdefault("settled_at", at(seconds + 0.2))
    return UndoCall(event_id, name, scheduled_at=at(seconds), **more)


def entry(number: int, action: str, undone_by: str | None, state: State, **more: Any) -> RunEntry:
    kind = more.pop("kind", "activity")
    contract = Contract(action, kind, undone_by, irreversible=undone_by is None)
    more.setdefault("event_id", number * 6 - 1)
    more.setdefault("settled_event_id", number * 6 + 1)
    more.setdefault("scheduled_at", at(number))
    more.setdefault("settled_at", at(number + 0.4))
    more.setdefault("sequence", number)
    return RunEntry(f"{SEED}-{number}", contract, number, state=state, **more)


def running() -> RunLedger:
    """A run that goes on."""
    return RunLedger(
        "order-7",
        "OrderWorkflow",
        "0198-run",
        "orders",
        entries=(
            entry(1, "reserve_stock", "release_stock", State.OPEN),
            entry(
                *(2, "charge_card", "refund_card", State.RUNNING),
                sequence=0,
                settled_at=None,
                settled_event_id=None,
            ),
        ),
        last_event_id=12,
        task_event_ids=(4, 10),
    )


def partial() -> RunLedger:
    """A run that failed, and whose unwind could not undo all."""
    answers = (
        _answer(4, "book_courier", "cancel_courier", "undone"),
        _answer(3, "charge_card", "refund_card", "failed", "ActivityError: PaymentDown"),
        _answer(2, "send_receipt", None, "irreversible"),
        _answer(1, "reserve_stock", "release_stock", "undone"),
    )
    unwind = UnwindReport(1, "node-failure", "CarrierRefused", "partial", at(6), at(12))
    return RunLedger(
        "order-17",
        "OrderWorkflow",
        "0198f2a4-77d1-7a43-9d1c-55d3b0a1c0de",
        "orders",
        entries=(
            _undone(1, "reserve_stock", "release_stock", undo(61, "release_stock", 11, unwind=1)),
            entry(2, "send_receipt", None, State.IRREVERSIBLE),
            entry(
                *(3, "charge_card", "refund_card", State.FAILED),
                unit=(1,),
                undos=(
                    undo(
                        *(51, "refund_card", 7),
                        unwind=1,
                        outcome="failed",
                        attempts=7,
                        reason="PaymentDown",
                    ),
                ),
            ),
            _undone(4, "book_courier", "cancel_courier", undo(41, "cancel_courier", 6, unwind=1)),
            entry(
                *(5, "notify_partner", "recall_notice", State.IN_DOUBT),
                doubt="timed_out",
                unit=(1, 2),
            ),
        ),
        committers_in_doubt=(CommitterInDoubt(f"{SEED}-6", "ship_order", "timed_out"),),
        children=(
            ChildRun(
                *(33, "PackWorkflow", "order-17-pack", "default", "0198-child"),
                compensated=True,
                parent_close_policy="request_cancel",
                end="completed",
                end_event_id=38,
            ),
        ),
        unrecorded=(UnrecordedCall(35, "reserve_stock", "local-activity"),),
        unreadable=(Unreadable(37, "header", "an unknown version: 9"),),
        end=RunEnd("failed", 66, at(12.5), "CompensationFailedError"),
        last_event_id=66,
        task_event_ids=(4, 10, 16, 22, 28, 40, 65),
        report=CompensationReport(
            "partial", "node-failure", "CarrierRefused", entries=answers, unwinds=(unwind,)
        ),
    )


def terminated() -> RunLedger:
    """A run that was terminated: nothing was undone."""
    return RunLedger(
        "order-8",
        "OrderWorkflow",
        "0198-gone",
        "orders",
        entries=(
            entry(1, "reserve_stock", "release_stock", State.SEALED),
            entry(2, "reserve_stock", "release_stock", State.OPEN, unit=(2,)),
            entry(
                *(3, "charge_card", "refund_card", State.RUNNING),
                sequence=0,
                settled_at=None,
                settled_event_id=None,
            ),
        ),
        end=RunEnd("terminated", 22, at(9)),
        last_event_id=22,
        task_event_ids=(4, 10, 16),
    )


def finished() -> RunLedger:
    """A run that finished: all is sealed."""
    return RunLedger(
        "order-9",
        "OrderWorkflow",
        "0198-fine",
        "orders",
        entries=(entry(1, "reserve_stock", "release_stock", State.SEALED),),
        end=RunEnd("completed", 12, at(3)),
        last_event_id=12,
        task_event_ids=(4, 10),
    )


def two_unwinds() -> RunLedger:
    """A run in which a unit was undone before the run was cancelled."""
    return RunLedger(
        "trip-3",
        "Trip",
        "0198-trip",
        "trips",
        entries=(
            _undone(1, "book_flight", "cancel_flight", undo(50, "cancel_flight", 9, unwind=2)),
            _undone(2, "book_hotel", "cancel_hotel", undo(20, "cancel_hotel", 3, unwind=1)),
            _undone(4, "book_train", "cancel_train", undo(44, "cancel_train", 8, unwind=2)),
        ),
        end=RunEnd("cancelled", 58, at(10)),
        last_event_id=58,
        task_event_ids=(4, 10, 16, 28, 40, 57),
        report=CompensationReport(
            *("completed", "run-cancel", "CancelledError"),
            unwinds=(
                UnwindReport(1, "join", "HotelFull", "completed", at(3), at(3.5), "1"),
                UnwindReport(2, "run-cancel", "CancelledError", "completed", at(8), at(9.5)),
            ),
        ),
    )


def crowded(count: int = 400) -> RunLedger:
    """A run with many actions."""
    entries = []
    for number in range(1, count + 1):
        state = State.FAILED if number == count // 2 else State.UNDONE
        call = undo(count * 6 + 6 * (count - number), "unpack", count + number, unwind=1)
        entries.append(entry(number, f"pack_{number % 7}", "unpack", state, undos=(call,)))
    unwind = UnwindReport(1, "cap-breach", "LimitExceededError", "partial", at(count + 1), None)
    return RunLedger(
        "parcel-1",
        "Parcels",
        "0198-many",
        "parcels",
        entries=tuple(entries),
        end=RunEnd("failed", count * 12 + 8, at(count * 2 + 2), "LimitExceededError"),
        last_event_id=count * 12 + 8,
        task_event_ids=(4,),
        report=CompensationReport("partial", "cap-breach", unwinds=(unwind,)),
    )


def hostile(names: Sequence[str] = tuple(HOSTILE.values())) -> RunLedger:
    """A run in which all is named by somebody else; four names or more."""
    entries = tuple(
        entry(
            *(number, name, name, State.FAILED),
            undos=(undo(100 + number, name, 20, reason=name, outcome="failed"),),
        )
        for number, name in enumerate(names, 1)
    )
    return RunLedger(
        names[0],
        names[1],
        names[2],
        names[3],
        entries=entries,
        committers_in_doubt=tuple(CommitterInDoubt(name, name, name) for name in names),
        children=tuple(ChildRun(9, name, name, name, name, end=name) for name in names),
        unrecorded=tuple(UnrecordedCall(9, name, name) for name in names),
        unreadable=tuple(Unreadable(9, name, name) for name in names),
        end=RunEnd("failed", 200, at(60), names[0]),
        report=CompensationReport(
            *("failed", "node-failure", names[1]),
            also_failed=tuple(names),
            unwinds=tuple(
                UnwindReport(n, name, name, "failed", at(15), unit=name)
                for n, name in enumerate(names, 1)
            ),
        ),
    )


def _undone(number: int, action: str, by: str, call: UndoCall) -> RunEntry:
    return entry(number, action, by, State.UNDONE, undos=(call,))


def _answer(
    number: int, action: str, by: str | None, verdict: str, reason: str | None = None
) -> EntryReport:
    return EntryReport(f"{SEED}-{number}", action, by, 1, verdict=verdict, reason=reason)
