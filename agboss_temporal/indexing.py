"""Writing a run's search attributes: only where a run unwinds, and only if that is wanted."""

from __future__ import annotations

from temporalio import workflow

from agboss_temporal.markers import SEARCH_PATCH
from agboss_temporal.search_attributes import OPEN, STATUS


class Index:
    """What a run's search attributes say.

    Whether they are written is decided once in a run and recorded by a marker: then by what the
    worker wants, in replay by the history. So the option may change while runs are open.

    Args:
        wanted: Whether this worker wants them.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._decided: bool | None = None
        self._written: tuple[str, int] | None = None

    @property
    def is_kept(self) -> bool:
        """Whether they are written; asked for the first time, this is decided."""
        if self._decided is None:
            asks = self._wanted or workflow.unsafe.is_replaying()
            self._decided = asks and workflow.patched(SEARCH_PATCH)
        return self._decided

    @property
    def shown(self) -> tuple[str, int] | None:
        """What they say, if anything: status and number of open effects.

        A run that continues another one begins with what that one had written.
        """
        if self._written is None:
            known = workflow.info().typed_search_attributes
            status, left_open = known.get(STATUS), known.get(OPEN)
            if status is not None and left_open is not None:
                self._written = status, left_open
        return self._written

    def show(self, status: str, left_open: int) -> None:
        """Write them unless they say so already: one event in the history."""
        if self.shown != (status, left_open):
            self._written = status, left_open
            workflow.upsert_search_attributes([STATUS.value_set(status), OPEN.value_set(left_open)])
