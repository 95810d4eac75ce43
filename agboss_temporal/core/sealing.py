"""What history is told when a unit seals: which units its seal covers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from agboss_temporal.core.entry import Entry
from agboss_temporal.core.errors import RecordError
from agboss_temporal.core.ledger import Ledger
from agboss_temporal.core.scope import UnitPath, parse_path, path_text

SEALED_UNIT: Final = "agboss-sealed"
"""Name of the memo field that tells it."""

_TEXT: Final = re.compile(r"=?[0-9.]+( =[0-9.]+)*")


@dataclass(frozen=True, slots=True)
class Seal:
    """The end of a unit that seals.

    History cannot see that units inside it have ended. As a rule all have, and the seal covers
    them; if one is still open and holds something, the units are listed that the seal covers.

    Attributes:
        units: What it covers, as far as records tell what belongs where.
        exact: Whether what is inside these units is not covered.
    """

    units: tuple[UnitPath, ...]
    exact: bool = False

    @classmethod
    def of(cls, unit: UnitPath, sealed: Iterable[Entry], ledger: Ledger) -> Seal:
        """Describe a seal that the ledger has just been given."""
        if not ledger.open_told(unit):
            return cls((unit,))
        return cls(tuple(sorted({entry.told for entry in sealed})), exact=True)

    def text(self) -> str:
        """Write it."""
        mark = "=" if self.exact else ""
        return " ".join(mark + path_text(unit) for unit in self.units)

    @classmethod
    def parse(cls, text: object) -> Seal:
        """Read it.

        Raises:
            RecordError: It is not a seal.
        """
        if not isinstance(text, str) or not _TEXT.fullmatch(text):
            raise RecordError(f"the memo field {SEALED_UNIT} names no units")
        return cls(
            tuple(parse_path(part.lstrip("=")) for part in text.split()),
            exact=text.startswith("="),
        )

    def apply(self, ledger: Ledger) -> None:
        """Seal what it covers."""
        for unit in self.units:
            for entry in ledger.open_told(unit):
                if not self.exact or entry.told == unit:
                    ledger.seal_all([entry])
