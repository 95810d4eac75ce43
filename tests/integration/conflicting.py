"""A module that contradicts itself."""

from __future__ import annotations

from temporalio import activity

from agboss_temporal import action, declare


@activity.defn
async def undo_one() -> None: ...


@action(compensate_with=undo_one)
@activity.defn
async def contradicted() -> None: ...


declare("contradicted", compensate_with="undo_another")
