"""What undoes what: contracts as pure data, their faults, and the table that a worker uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["activity", "workflow"]
UndoInput: TypeAlias = Literal["result", "args", "context", "nothing"]
OnUnknown: TypeAlias = Literal["report", "undo"]

UNDO_OPTION_NAMES: Final = frozenset(
    {
        "task_queue",
        "schedule_to_close_timeout",
        "schedule_to_start_timeout",
        "start_to_close_timeout",
        "heartbeat_timeout",
        "retry_policy",
        "versioning_intent",
        "priority",
    }
)
"""The names of temporalio's ``ActivityConfig`` that an undo takes. The others belong to the unwind:
it names the call itself, waits for it, and writes its summary."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a declaration stands in the source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a declaration.

    Attributes:
        code: Stable code, such as ``action.undo-not-registered``.
        action: The registered name of the action.
        message: What is wrong, and the next step.
        place: Where the declaration stands.
    """

    code: str
    action: str
    message: str
    place: Place

    def __str__(self) -> str:
        return f"[{self.code}] {self.action}: {self.message} ({self.place})"


@dataclass(frozen=True)
class Contract:
    """What is declared for one activity or workflow type: names and options, no code.

    Attributes:
        action: Registered name of the activity or workflow type.
        kind: Which of the two it is.
        undo: Registered name of the activity that reverses it.
        committer: Registered name of the call after which nothing undoes it.
        undo_input: What the undo is given.
        undo_options: Options of the undo's call, by the names of ``ActivityConfig``.
        on_unknown: What happens to an execution that nobody knows the outcome of.
        no_effect_errors: Wire types of errors that prove that nothing was done.
        irreversible: There is no inverse.
        place: Where it is declared. Not part of the meaning: two contracts that differ only here
            are equal.
    """

    action: str
    kind: Kind = "activity"
    undo: str | None = None
    committer: str | None = None
    undo_input: UndoInput = "result"
    undo_options: Mapping[str, Any] = field(default_factory=dict)
    on_unknown: OnUnknown = "report"
    no_effect_errors: tuple[str, ...] = ()
    irreversible: bool = False
    place: Place = field(default=Place("<unknown>", 0), compare=False)

    @property
    def is_action(self) -> bool:
        """Whether executions of it are entered in the ledger."""
        return self.undo is not None or self.irreversible

    @property
    def needs_args(self) -> bool:
        """Whether its undo is given the action's arguments."""
        return self.undo_input in ("args", "context")

    def fault(self, code: str, message: str) -> Fault:
        """Make a fault of this declaration."""
        return Fault(f"action.{code}", self.action, message, self.place)


def faults_of(contract: Contract) -> list[Fault]:
    """Find what a declaration says wrongly by itself, all of it."""
    found: list[Fault] = []
    if contract.irreversible and contract.undo is not None:
        found.append(
            contract.fault(
                "irreversible-with-undo",
                f"it is declared irreversible, yet {contract.undo!r} undoes it; keep one of them",
            )
        )
    if contract.committer is not None and contract.undo is None:
        found.append(
            contract.fault(
                "committer-without-compensator",
                "committed_by says until when it can be undone, but nothing undoes it; "
                "add compensate_with",
            )
        )
    if (
        contract.on_unknown == "undo"
        and contract.undo is not None
        and contract.undo_input == "result"
    ):
        found.append(
            contract.fault(
                "unknown-needs-input",
                "on_unknown='undo' runs the undo when there is no result; "
                "set undo_input to 'args', 'context' or 'nothing'",
            )
        )
    found.extend(_option_faults(contract))
    return found


def _option_faults(contract: Contract) -> list[Fault]:
    choices = {
        "undo_input": (contract.undo_input, get_args(UndoInput)),
        "on_unknown": (contract.on_unknown, get_args(OnUnknown)),
        "kind": (contract.kind, get_args(Kind)),
    }
    found = [
        contract.fault("unknown-option", f"{name} is {value!r}; it must be one of {allowed}")
        for name, (value, allowed) in choices.items()
        if value not in allowed
    ]
    unknown = sorted(set(contract.undo_options) - UNDO_OPTION_NAMES)
    if unknown:
        found.append(
            contract.fault(
                "unknown-option",
                f"undo_options has {', '.join(unknown)}; an undo takes "
                f"{', '.join(sorted(UNDO_OPTION_NAMES))}",
            )
        )
    return found


class ContractTable:
    """The contracts that one worker knows, looked up by the name that a workflow calls."""

    def __init__(
        self,
        contracts: Iterable[Contract] = (),
        *,
        ambiguous: Iterable[tuple[Kind, str]] = (),
    ) -> None:
        """Build the table.

        Args:
            contracts: At most one for each kind and name.
            ambiguous: Names for which this process holds differing contracts and nothing says
                which one this worker means; calling one of them is an error.
        """
        self._by_name: dict[tuple[Kind, str], Contract] = {(c.kind, c.action): c for c in contracts}
        self.ambiguous: frozenset[tuple[Kind, str]] = frozenset(ambiguous)
        self.undos: frozenset[str] = frozenset(
            c.undo for c in self._by_name.values() if c.undo is not None
        )
        self.committers: frozenset[str] = frozenset(
            c.committer for c in self._by_name.values() if c.committer is not None
        )

    def get(self, kind: Kind, name: str) -> Contract | None:
        """Return the contract of a type, if one is declared."""
        return self._by_name.get((kind, name))

    def __iter__(self) -> Any:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)
