"""The names that dashboards, alerts and log searches are built on. They are API."""

from __future__ import annotations

from typing import Final

ACTIONS: Final = "agboss_compensation_actions"
UNWINDS_STARTED: Final = "agboss_compensation_unwinds_started"
UNWINDS: Final = "agboss_compensation_unwinds"
UNDOS: Final = "agboss_compensation_undos"
UNWIND_DURATION: Final = "agboss_compensation_unwind_duration"
UNDO_DURATION: Final = "agboss_compensation_undo_duration"
UNWIND_SIZE: Final = "agboss_compensation_unwind_size"
UNDO_ATTEMPTS: Final = "agboss_compensation_undo_attempts"
UNRECORDED: Final = "agboss_compensation_unrecorded"
AMBIGUOUS_UNDOS: Final = "agboss_compensation_ambiguous_undos"

DESCRIPTIONS: Final = {
    ACTIONS: "Actions, by what became of them; committers only where they are in doubt.",
    UNWINDS_STARTED: "Unwinds that have begun.",
    UNWINDS: "Unwinds that have ended, by their status.",
    UNDOS: "Actions that an undo was planned or called for, by verdict.",
    UNWIND_DURATION: "From the start of an unwind to its last verdict.",
    UNDO_DURATION: "From the call of an undo to its verdict, over all its attempts.",
    UNWIND_SIZE: "How many entries the plan of an unwind has.",
    UNDO_ATTEMPTS: "Attempts of undos, by their result.",
    UNRECORDED: "Actions that ran without being recorded.",
    AMBIGUOUS_UNDOS: "Explicit calls of an undo that could not be told to close an action.",
}
"""What each metric counts or measures."""

OPENED: Final = "opened"
"""What an action is called that has taken effect."""

EXTRA: Final = "agboss_compensation"
"""Name of the field of a log record that holds what the message says, as a dictionary."""

SCOPE: Final = "agboss_temporal"
"""Name of the instrumentation scope of the spans."""

PREFIX: Final = "agboss.compensation."

ROLE: Final = PREFIX + "role"
ATTEMPT: Final = PREFIX + "attempt"
LINK: Final = PREFIX + "link"
ACTION_NAME: Final = PREFIX + "action.name"
ACTION_KEY: Final = PREFIX + "action.key"
ACTION_STATE: Final = PREFIX + "action.state"
ACTION_DOUBT: Final = PREFIX + "action.doubt"
ACTION_OUTCOME: Final = PREFIX + "action.outcome"
UNWIND_TRIGGER: Final = PREFIX + "unwind.trigger"
UNWIND_UNIT: Final = PREFIX + "unwind.unit"
UNWIND_ORDINAL: Final = PREFIX + "unwind.ordinal"
UNWIND_SIZE_ATTRIBUTE: Final = PREFIX + "unwind.size"
UNWIND_STATUS: Final = PREFIX + "unwind.status"
UNWIND_VERDICTS: Final = PREFIX + "unwind.verdicts."
UNWIND_ORIGIN: Final = PREFIX + "unwind.origin"
UNDO_NAME: Final = PREFIX + "undo.name"
UNDO_VERDICT: Final = PREFIX + "undo.verdict"
UNDO_REASON: Final = PREFIX + "undo.reason"

ERROR_TYPE: Final = "error.type"
"""OpenTelemetry's own name for the type of an error."""

WORKFLOW_ID: Final = "temporalWorkflowID"
RUN_ID: Final = "temporalRunID"
"""The names that temporalio's own spans use."""

COMPENSATES: Final = "compensates"
"""What the link of an undo to the span of its action says."""
