"""Ids of the markers that histories hold. They never change."""

from __future__ import annotations

from typing import Final

OWN_PATCHES: Final = "agboss-"
"""What all of them begin with."""

UNWIND_PATCH: Final = "agboss-unwind-1"
"""Id of the marker with which a run's own unwind begins."""

HANDLER_PATCH: Final = "agboss-handler-unwind-1"
"""Id of the marker with which the unwind of a handler begins, in a run that goes on."""

CONTINUE_PATCH: Final = "agboss-continue-1"
"""Id of the marker with which a run that continues as new lets running calls settle."""
