"""Ids of the markers with which a run says in its history what it began to do."""

from __future__ import annotations

from typing import Final

UNWIND_PATCH: Final = "agboss-unwind-1"
"""Id of the marker with which a run's own unwind begins."""

HANDLER_PATCH: Final = "agboss-handler-unwind-1"
"""Id of the marker with which the unwind of a handler begins, in a run that goes on."""

CONTINUE_PATCH: Final = "agboss-continue-1"
"""Id of the marker with which a run that continues as new lets running calls settle."""

SEARCH_PATCH: Final = "agboss-search-attributes-1"
"""Id of the marker of a run that writes search attributes."""
