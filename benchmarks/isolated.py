"""The parts of recording, each by itself: what they cost where nothing else runs."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    Interceptor,
    Replayer,
    ReplayerConfig,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from agboss_temporal import action
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.entry import Entry
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.wire import HEADER, ActionTemplate
from agboss_temporal_interceptors.capture import Capture
from agboss_temporal_interceptors.headers import with_record
from benchmarks.shape import Receipt, release_stock, reserve_stock
from benchmarks.variants import DECLARED, sandbox

CONTRACT: Final = Contract("reserve_stock", undo="release_stock", committer="ship_order")
KEY: Final = "d25106f3a9b07c11-1000"
TEMPLATE: Final = ActionTemplate.of(CONTRACT)


@dataclass(frozen=True)
class Part:
    """What one part of recording costs for one action, in microseconds of CPU."""

    name: str
    us: float


async def measure(history: WorkflowHistory, *, repeats: int) -> list[Part]:
    """Time the parts.

    Args:
        history: A recorded run of many actions, one at a time.
        repeats: How often each part is timed; the fastest counts.
    """
    return [
        *await _start(history, repeats),
        Part("header: record, JSON, payload", _best(header, repeats)),
        Part("ledger: entry begun, completed, sealed", _best(entry, repeats)),
        Part(
            "capture: decoding through it, less plain decoding",
            _best(decode_captured, repeats) - _best(decode_plain, repeats),
        ),
        Part(
            "`@action` executed again, as by a sandbox that imports the module for each run",
            _best(declare_again, repeats),
        ),
    ]


def _best(part: Callable[[], object], repeats: int, number: int = 2000) -> float:
    return (
        1e6
        * min(timeit.repeat(part, number=number, repeat=repeats, timer=time.thread_time))
        / (number)
    )


def header() -> Payload:
    """Write the header of an action."""
    return with_record({}, TEMPLATE.fill(KEY, ()))[HEADER]


def entry() -> None:
    """Take an entry through its life."""
    ledger = Ledger()
    ledger.complete(ledger.begin(Entry(KEY, CONTRACT, 1000)), None)
    ledger.seal("ship_order", ())


_CONVERTER: Final = DataConverter.default.payload_converter
[_PAYLOAD] = _CONVERTER.to_payloads([Receipt("order-1000", "stock")])


def decode_plain() -> Any:
    """Decode a result."""
    return _CONVERTER.from_payloads([_PAYLOAD], [Receipt])


def decode_captured() -> Any:
    """Decode a result and see its payload."""
    seen: list[Payload] = []
    hint: Any = Capture(Receipt, _CONVERTER, seen.append)
    return _CONVERTER.from_payloads([_PAYLOAD], [hint])


def declare_again() -> object:
    """Declare what is declared already."""
    return action(compensate_with=release_stock, committed_by="ship_order")(reserve_stock)


async def _start(history: WorkflowHistory, repeats: int) -> list[Part]:
    """Time the way out: between an interceptor before the recorder and one behind it."""
    inner, outer = _Stopwatch(), _Stopwatch()
    replayer = Replayer(
        workflows=DECLARED.workflows,
        workflow_runner=sandbox(),
        plugins=[*DECLARED.plugins(), _Around(inner, outer)],
    )
    for _ in range(repeats):
        await replayer.replay_workflow(history)
    spent = [after - before for after, before in zip(outer.spent, inner.spent, strict=True)]
    name = "way out: key, contract, entry, header, capture, observation"
    return [Part(f"{name}; median", median(spent)), Part(f"{name}; mean", fmean(spent))]


class _Around(SimplePlugin):
    """Puts one interceptor behind, and one before, those of the plugins given before it."""

    def __init__(self, inner: Interceptor, outer: Interceptor) -> None:
        super().__init__("benchmarks.Around")
        self._inner = inner
        self._outer = outer

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Enclose them. An outgoing call passes the last of the list first."""
        config = super().configure_replayer(config)
        between = config.get("interceptors") or []
        config["interceptors"] = [self._inner, *between, self._outer]
        return config


class _Stopwatch(Interceptor):
    """Times the start of every activity, from where it stands in the chain inwards.

    Wall time, whose clock costs least: the median of very many is what undisturbed CPU takes.
    """

    def __init__(self) -> None:
        self.spent: list[float] = []

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor]:
        spent = self.spent

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
                start = time.perf_counter_ns()
                handle = self.next.start_activity(input)
                spent.append((time.perf_counter_ns() - start) / 1000)
                return handle

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound
