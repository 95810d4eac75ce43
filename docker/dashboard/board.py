"""What the dashboard shows, row by row."""

from __future__ import annotations

import json
from collections.abc import Sequence

from grafana_foundation_sdk.builders import bargauge, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

from docker.dashboard.panels import (
    JAEGER,
    PROMETHEUS,
    TraceSearch,
    bars,
    figure,
    jaeger_search,
    lines,
    link,
    now,
    query,
    shown,
)
from docker.dashboard.promql import CHOSEN, LEFT, OURS, gained, less, quantile, still_open


def figures() -> list[stat.Panel]:
    """What an operator wants to know first."""
    begun = gained(OURS + "unwinds_started_total", "", "$__range")
    ended = gained(OURS + "unwinds_total", "", "$__range")
    return [
        figure("Unwinds begun", "In the time shown.", begun),
        figure(
            "Unwinds not ended",
            "Begun less ended in the time shown. One that began before it and ended in it hides"
            " another.",
            f"clamp_min({less(begun, ended)}, 0)",
        ),
        figure(
            "Undos given up",
            "Effects that are still there although they were to be undone. Each needs a person.",
            gained(OURS + "undos_total", "", "$__range", LEFT),
            alarming=True,
        ),
        figure(
            "In doubt",
            "Calls that were started and have no outcome: nobody knows whether they had an effect.",
            gained(OURS + "actions_total", "", "$__range", 'state="in_doubt"'),
            alarming=True,
        ),
        figure(
            "Unrecorded",
            "Actions that ran without a record; no unwind will undo them.",
            gained(OURS + "unrecorded_total", "", "$__range"),
            alarming=True,
        ),
        figure(
            "Open actions",
            "Opened or in doubt, less sealed and less judged by an unwind, in the time shown:"
            " effects that would be undone if their runs failed now, or of which nobody knows.",
            f"sum({still_open('$__range')})",
        ),
    ]


def unwinds() -> list[timeseries.Panel]:
    """Unwinds by trigger and outcome, how long they take, how large they are."""
    duration, size = OURS + "unwind_duration_seconds", OURS + "unwind_size"
    return [
        bars(
            "Unwinds begun, by trigger",
            "Why runs are undone.",
            6,
            gained(OURS + "unwinds_started_total", "trigger", "$__interval"),
            "{{trigger}}",
        ),
        bars(
            "Unwinds ended, by trigger and status",
            "completed: everything was undone. partial, failed: something was left.",
            6,
            gained(OURS + "unwinds_total", "trigger,status", "$__interval"),
            "{{trigger}}: {{status}}",
        ),
        lines(
            "Duration of unwinds",
            "From the start of an unwind to its last verdict, by status.",
            6,
            [
                query(quantile(0.5, duration, "status", "$__interval"), "{{status}} p50"),
                query(quantile(0.95, duration, "status", "$__interval"), "{{status}} p95", ref="B"),
            ],
            "s",
        ),
        lines(
            "Size of unwinds",
            "Entries of a plan, on average.",
            6,
            [
                query(
                    gained(size + "_sum", "trigger", "$__interval")
                    + " / "
                    + gained(size + "_count", "trigger", "$__interval"),
                    "{{trigger}}",
                )
            ],
        ),
    ]


def gave_up() -> table.Panel:
    """What a person has to see to, with links to the traces."""
    # What was not run has no span of its own, so the link is to unwinds that left something behind.
    found = jaeger_search("Unwind:${__data.fields.workflow_type}", {"error": "true"})
    panel = shown(
        table.Panel(),
        "Gave up",
        "Undos that failed for good or were not run any more, in the time shown. The link shows"
        " the traces of unwinds that left something, which name the runs; agboss-temporal status"
        " says what each has left.",
        12,
    ).datasource(PROMETHEUS)
    by = "namespace,task_queue,workflow_type,action,verdict"
    return (
        panel.with_target(now(f"round({gained(OURS + 'undos_total', by, '$__range', LEFT)}) > 0"))
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize",
                options={"excludeByName": {"Time": True}, "renameByName": {"Value": "undos"}},
            )
        )
        .override_by_name("action", [link("Traces of unwinds that left something", found)])
    )


def undos() -> list[Builder[models.Panel]]:
    """How undos go."""
    duration, attempts = OURS + "undo_duration_seconds", OURS + "undo_attempts_total"
    tried = gained(attempts, "action", "$__interval")
    called = gained(OURS + "undo_duration_seconds_count", "action", "$__interval")
    return [
        gave_up(),
        lines(
            "Latency of undos",
            "From the call of an undo to its verdict, over all its attempts, by action.",
            12,
            [
                query(quantile(0.5, duration, "action", "$__interval"), "{{action}} p50"),
                query(quantile(0.95, duration, "action", "$__interval"), "{{action}} p95", ref="B"),
            ],
            "s",
        ),
        bars(
            "Attempts of undos, by result",
            "Errors that go on for long: an unwind is stuck.",
            12,
            gained(attempts, "action,result", "$__interval"),
            "{{action}}: {{result}}",
        ),
        lines(
            "Attempts per undo",
            "Attempts less than a minute old may belong to undos that have no verdict yet.",
            12,
            [query(f"{tried} / {called}", "{{action}}")],
        ),
    ]


def actions() -> list[Builder[models.Panel]]:
    """What is done, and what is open."""
    open_now = shown(
        bargauge.Panel(),
        "Open actions, by action",
        "As the figure above.",
        12,
    ).datasource(PROMETHEUS)
    target = query(f"round({still_open('$__range')})", "{{action}}")
    return [
        bars(
            "Actions, by what became of them",
            "opened: took effect. sealed: never undone any more. in_doubt: nobody knows.",
            12,
            gained(OURS + "actions_total", "state", "$__interval"),
            "{{state}}",
        ),
        open_now.with_target(target.instant()).orientation(common.VizOrientation.HORIZONTAL),
    ]


def traces() -> table.Panel:
    """The newest unwinds of one workflow type."""
    panel = shown(
        table.Panel(),
        "Traces of unwinds of $workflow",
        "The newest 20 in the time shown. A trace shows the actions, the unwind and each undo.",
        24,
    ).datasource(JAEGER)
    to_trace = link("The trace in Jaeger", "${jaeger:raw}/trace/${__value.raw}")
    return panel.with_target(TraceSearch("Unwind:$workflow")).override_by_name(
        "traceID", [to_trace]
    )


def workers() -> list[timeseries.Panel]:
    """Whether anybody is there to undo anything."""
    waiting = "temporal_activity_schedule_to_start_latency_seconds"
    failed = "temporal_workflow_task_execution_failed_total"
    used = f"temporal_worker_task_slots_used{{{CHOSEN}}}"
    left = f"temporal_worker_task_slots_available{{{CHOSEN}}}"
    by = "task_queue,worker_type"
    return [
        lines(
            "Workers that poll",
            "Processes, by task queue. Where there is none, unwinds wait.",
            6,
            [
                query(
                    "count by (task_queue)(count by (task_queue,instance)"
                    f"(temporal_num_pollers{{{CHOSEN}}} > 0))",
                    "{{task_queue}}",
                )
            ],
        ),
        lines(
            "Slots in use",
            "At 100 % the worker takes no more work, undos included.",
            6,
            [
                query(
                    f"sum by ({by})({used}) / (sum by ({by})({used}) + sum by ({by})({left}))",
                    "{{task_queue}}: {{worker_type}}",
                )
            ],
            "percentunit",
        ),
        lines(
            "Activities waiting for a worker, p95",
            "Undos wait as long.",
            6,
            [query(quantile(0.95, waiting, "task_queue", "$__interval"), "{{task_queue}}")],
            "s",
        ),
        bars(
            "Failed workflow tasks",
            "A defect in workflow code, or a change that does not replay: the run stands still"
            " until a deploy cures it, and an unwind with it.",
            6,
            gained(failed, "workflow_type", "$__interval"),
            "{{workflow_type}}",
        ),
    ]


def variables() -> list[Builder[models.VariableModel]]:
    """What can be chosen at the top."""

    def values(name: str, label: str, source: str) -> builders.QueryVariable:
        made = builders.QueryVariable(name).datasource(PROMETHEUS)
        return made.query(f"label_values({source}, {label})").refresh(
            models.VariableRefresh.ON_TIME_RANGE_CHANGED
        )

    everything = models.VariableOption(text="All", value="$__all")
    chosen = [
        values(name, name, "temporal_num_pollers")
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(everything)
        for name in ("namespace", "task_queue")
    ]
    return [
        *chosen,
        values("workflow", "workflow_type", OURS + "unwinds_started_total").label("traces of"),
        builders.TextBoxVariable("service")
        .label("service in traces")
        .default_value("order-worker")
        .current(models.VariableOption(text="order-worker", value="order-worker")),
        builders.ConstantVariable("jaeger").value("http://localhost:16686"),
    ]


def build() -> str:
    """Return the dashboard as JSON."""
    board = (
        builders.Dashboard("Compensation")
        .uid("agboss-compensation")
        .description("What Temporal workflows undo, how it goes, and what needs a person.")
        .tags(["agboss-temporal"])
        .readonly()
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
    )
    for variable in variables():
        board.with_variable(variable)
    rows: dict[str, Sequence[Builder[models.Panel]]] = {
        "Now": figures(),
        "Unwinds": unwinds(),
        "Undos": undos(),
        "Actions": actions(),
        "Traces": [traces()],
        "Workers": workers(),
    }
    for title, panels in rows.items():
        board.with_row(builders.Row(title))
        for panel in panels:
            board.with_panel(panel)
    built = board.build()
    for number, each in enumerate(built.panels or [], start=1):
        each.id_val = number
    return json.dumps(built, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
