"""``python -m benchmarks.reading``: the ledger of a long run from its history alone.

Each case is a history of so many events that is made here, without a server, and read in a process
of its own: once from parsed events, once from JSON as it is exported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.client import WorkflowHistory

from agboss_temporal import history
from agboss_temporal.core.contract import Contract
from agboss_temporal.core.scope import UnitPath
from agboss_temporal.core.sealing import SEALED_UNIT, Seal
from agboss_temporal.core.wire import ActionTemplate, CallRecord, encode
from agboss_temporal_interceptors.headers import with_record

MAX_SECONDS: Final = 3.0
MAX_MEGABYTES: Final = 500.0

_ACTION: Final = ActionTemplate.of(Contract("reserve_stock", undo="release_stock"))
_SEALED: Final = ActionTemplate.of(
    Contract("reserve_stock", undo="release_stock", committer="ship_order")
)
_RECEIPT: Final = Payload(
    metadata={"encoding": b"json/plain"}, data=b'{"id":"order-1000-stock","what":"stock"}'
)


class Maker:
    """Writes a history as a server does."""

    def __init__(self, events: int) -> None:
        self.events: list[HistoryEvent] = []
        self.calls = 0
        self._most = events
        self._second = 1_790_000_000
        started = self._add(
            "WORKFLOW_EXECUTION_STARTED"
        ).workflow_execution_started_event_attributes
        started.workflow_type.name = "OrderWorkflow"
        started.task_queue.name = "orders"
        started.workflow_id = "order-1000"
        self._task()

    @property
    def left(self) -> int:
        """How many events there is room for, with one more for the end."""
        return self._most - len(self.events) - 1

    def action(self, *, sealed: bool = False, unit: UnitPath = ()) -> str:
        """Run an action to its completion; return its key."""
        key = f"d25106f3a9b07c11-{self.calls + 1}"
        template = _SEALED if sealed else _ACTION
        self._call("reserve_stock", template.fill(key, unit))
        return key

    def seal(self, unit: UnitPath) -> None:
        """End a unit that seals."""
        event = self._add("WORKFLOW_PROPERTIES_MODIFIED")
        memo = event.workflow_properties_modified_event_attributes.upserted_memo
        memo.fields[SEALED_UNIT].metadata["encoding"] = b"json/plain"
        memo.fields[SEALED_UNIT].data = json.dumps(Seal((unit,)).text()).encode()

    def committer(self) -> None:
        """Run a committer to its completion."""
        key = f"d25106f3a9b07c11-{self.calls + 1}"
        self._call("ship_order", encode(CallRecord(committer_key=key)))

    def undo(self, key: str) -> None:
        """Run an undo of the run's unwind to its completion."""
        record = CallRecord(undoes=key, unwind=1, trigger="node-failure", cause="Refused")
        self._call("release_stock", encode(record))

    def fail(self) -> None:
        """Close the run."""
        event = self._add("WORKFLOW_EXECUTION_FAILED")
        failure = event.workflow_execution_failed_event_attributes.failure
        failure.application_failure_info.type = "Refused"

    def _call(self, name: str, record: bytes) -> None:
        self.calls += 1
        event = self._add("ACTIVITY_TASK_SCHEDULED")
        scheduled = event.activity_task_scheduled_event_attributes
        scheduled.activity_id = str(self.calls)
        scheduled.activity_type.name = name
        scheduled.task_queue.name = "orders"
        scheduled.input.payloads.add().CopyFrom(_RECEIPT)
        for header, payload in with_record({}, record).items():
            scheduled.header.fields[header].CopyFrom(payload)
        begun = self._add("ACTIVITY_TASK_STARTED").activity_task_started_event_attributes
        begun.scheduled_event_id, begun.attempt = event.event_id, 1
        done = self._add("ACTIVITY_TASK_COMPLETED").activity_task_completed_event_attributes
        done.scheduled_event_id = event.event_id
        done.result.payloads.add().CopyFrom(_RECEIPT)
        self._task()

    def _task(self) -> None:
        self._add("WORKFLOW_TASK_SCHEDULED")
        begun = self._add("WORKFLOW_TASK_STARTED").event_id
        done = self._add("WORKFLOW_TASK_COMPLETED").workflow_task_completed_event_attributes
        done.started_event_id = begun

    def _add(self, name: str) -> HistoryEvent:
        self._second += 1
        event = HistoryEvent(
            event_id=len(self.events) + 1,
            event_time=Timestamp(seconds=self._second),
            event_type=EventType.Value(f"EVENT_TYPE_{name}"),
        )
        getattr(event, f"{name.lower()}_event_attributes").SetInParent()
        self.events.append(event)
        return event


def unwound(make: Maker) -> None:
    """Half of it acts, half of it undoes."""
    keys = []
    while make.left > make._most // 2:
        keys.append(make.action())
    while keys and make.left >= 6:
        make.undo(keys.pop())


def rounds(make: Maker) -> None:
    """Five actions, then their committer, again and again."""
    while make.left >= 36:
        for _ in range(5):
            make.action(sealed=True)
        make.committer()


def piling_up(make: Maker) -> None:
    """An action that stays open, then the committer of others, again and again."""
    while make.left >= 12:
        make.action()
        make.committer()


def units(make: Maker) -> None:
    """An action that stays open, then one in a unit that seals, again and again."""
    while make.left >= 13:
        make.action()
        unit = (make.calls,)
        make.action(unit=unit)
        make.seal(unit)


SHAPES: Final[dict[str, Callable[[Maker], None]]] = {
    "undone one by one": unwound,
    "sealed in rounds": rounds,
    "open, beside committers": piling_up,
    "open, beside units that seal": units,
}


@dataclass(frozen=True)
class Case:
    """What reading one history took.

    Attributes:
        shape: What the run did.
        events: How many events it has.
        entries: How many executions of actions.
        size: Bytes of the events.
        ledger: Seconds of `history.ledger` from parsed events.
        cpu: The same in seconds of CPU, which other work on the machine does not add to.
        memory: Megabytes that the process held at most, with those events and the ledger.
        parsing: Seconds of CPU to parse the JSON of the same history.
        parsing_memory: Megabytes that a process held at most that parsed it.
    """

    shape: str
    events: int
    entries: int
    size: int
    ledger: float
    cpu: float
    memory: float
    parsing: float
    parsing_memory: float


def measure(shape: str, events: int, folder: Path) -> Case:
    """Make a history and let two processes read it."""
    make = Maker(events)
    SHAPES[shape](make)
    make.fail()
    written = History(events=make.events)
    (folder / "events").write_bytes(written.SerializeToString())
    whole = WorkflowHistory("order-1000", make.events).to_json()
    (folder / "export.json").write_text(whole, encoding="utf-8")
    found = _in_process(folder / "events")
    parsed = _in_process(folder / "export.json")
    return Case(
        shape=shape,
        events=len(make.events),
        entries=found["entries"],
        size=written.ByteSize(),
        ledger=found["seconds"],
        cpu=found["cpu"],
        memory=found["memory"],
        parsing=parsed["cpu"],
        parsing_memory=parsed["memory"],
    )


def _in_process(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.reading", "--read", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read(path: Path) -> dict[str, Any]:
    """Read a history in this process, and say what that took."""
    if path.suffix == ".json":
        begun = _clocks()
        parsed = history.load(path)
        spent, entries = _since(begun), len(parsed.events)
    else:
        events = History.FromString(path.read_bytes()).events
        parsed = WorkflowHistory("order-1000", list(events))
        begun = _clocks()
        ledger = asyncio.run(history.ledger(parsed))
        spent, entries = _since(begun), len(ledger.entries)
    return {"seconds": spent[0], "cpu": spent[1], "entries": entries, "memory": most_held()}


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begun: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = _clocks()
    return wall - begun[0], cpu - begun[1]


def most_held() -> float:
    """Return how many megabytes this process has held at most.

    Linux counts to `ru_maxrss` what the process held that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def table(cases: Iterable[Case]) -> str:
    """Write the cases as a Markdown table."""
    rows = [
        "| run | events | entries | MB | ledger, s | CPU, s | RSS, MB "
        "| JSON, CPU, s | its RSS, MB |",
        "| --- " * 9 + "|",
    ]
    rows += [
        f"| {c.shape} | {c.events:,} | {c.entries:,} | {c.size / 2**20:.1f} | {c.ledger:.2f} | "
        f"{c.cpu:.2f} | {c.memory:.0f} | {c.parsing:.2f} | {c.parsing_memory:.0f} |"
        for c in cases
    ]
    return "\n".join(rows)


def main() -> int:
    """Run as a command.

    Returns:
        0 if everything is as asked, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--events", type=int, default=50_000, help="how long the histories are")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read is not None:
        print(json.dumps(read(args.read)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [measure(shape, args.events, Path(folder)) for shape in SHAPES]
    print(table(cases), "", "| asked | found | holds |", "| --- | --- | --- |", sep="\n")
    slowest = max(case.cpu for case in cases)
    largest = max(case.memory for case in cases)
    fast, small = slowest < MAX_SECONDS, largest < MAX_MEGABYTES
    for what, value, holds in (
        (f"ledger from parsed events: under {MAX_SECONDS:.0f} s CPU", f"{slowest:.2f} s", fast),
        (f"at most {MAX_MEGABYTES:.0f} MB RSS", f"{largest:.0f} MB", small),
    ):
        print(f"| {what} | {value} | {'yes' if holds else '**no**'} |")
    return int(not (fast and small))


if __name__ == "__main__":
    sys.exit(main())
