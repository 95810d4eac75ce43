"""The three ways to write the order, and what a worker or a replayer of each is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from agboss_temporal import CompensationPlugin
from benchmarks.shape import DeclaredOrder, HandWrittenOrder, ManyActions, PlainOrder, WithOptions


@dataclass(frozen=True)
class Variant:
    """One way to write the order.

    Attributes:
        name: What the tables call it.
        letter: Stands for it in ids and queue names, which are thus equally long.
        order: Its workflow.
        with_plugin: Whether its worker's client has the plugin.
    """

    name: str
    letter: str
    order: type
    with_plugin: bool = False

    @property
    def queue(self) -> str:
        """The task queue of its worker."""
        return f"bench-{self.letter}"

    @property
    def workflows(self) -> list[type]:
        """What its worker registers."""
        return [self.order, ManyActions, WithOptions]

    def plugins(self) -> list[CompensationPlugin]:
        """Make the plugins of its client, or of its replayer."""
        return [CompensationPlugin()] if self.with_plugin else []


PLAIN: Final = Variant("no undo", "a", PlainOrder)
BY_HAND: Final = Variant("by hand", "b", HandWrittenOrder)
DECLARED: Final = Variant("declared", "c", DeclaredOrder, with_plugin=True)

VARIANTS: Final = (PLAIN, BY_HAND, DECLARED)


def sandbox() -> SandboxedWorkflowRunner:
    """Make the sandbox of every worker and replayer here: on, these modules passed through."""
    return SandboxedWorkflowRunner(
        restrictions=SandboxRestrictions.default.with_passthrough_modules(
            "benchmarks", "agboss_temporal", "agboss_temporal_interceptors"
        )
    )


def rotated(number: int, variants: tuple[Variant, ...] = VARIANTS) -> tuple[Variant, ...]:
    """Return the variants in an order that gives each its turn at every place."""
    first = number % len(variants)
    return variants[first:] + variants[:first]
