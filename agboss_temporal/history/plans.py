"""Reading the plans that runs hand to recovery workflows, and what these answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload

from agboss_temporal.core import recovery
from agboss_temporal.core.carry import Carried
from agboss_temporal.core.errors import RecordError, RecordVersionError
from agboss_temporal.core.facts import HandedEntry, HandOver
from agboss_temporal.core.recovery import Outcome, RecoveryPlan
from agboss_temporal.history.payloads import Plain
from agboss_temporal.undo_options import from_json


def plan_in(payloads: Sequence[Payload], plain: Plain) -> RecoveryPlan | str:
    """Read the plan that a recovery workflow is given, or say why it cannot be read.

    Raises:
        RecordError: It is no plan.
    """
    if not payloads:
        raise RecordError("a recovery workflow without a plan")
    data, problem = plain.binary(payloads[0])
    if problem is not None:
        return problem
    plan = recovery.decode_plan(data)
    return dataclasses.replace(plan, entries=[_bound(each) for each in plan.entries])


def hand_over_in(payloads: Sequence[Payload], plain: Plain) -> HandOver | str:
    """Read what a child is given of an unwind, or say why it cannot be read.

    Raises:
        RecordError: It is no plan.
    """
    plan = plan_in(payloads, plain)
    if isinstance(plan, str):
        return plan
    entries = [_handed(plan.entries[number]) for number in plan.order]
    return HandOver(plan.workflow_id, plan.unwind, entries)


def answer_in(payloads: Sequence[Payload], plain: Plain) -> Mapping[str, Outcome] | Outcome | str:
    """Read what a child answers, or say why it cannot be read.

    Returns:
        What became of each entry, by key; what the run that waited for it made of an answer that
        is none; or why it cannot be read.

    Raises:
        RecordVersionError: It is of a version that this code does not know.
    """
    try:
        return result_in(payloads, plain)
    except RecordVersionError:
        raise
    except RecordError as err:
        return recovery.no_answer(type(err).__name__)


def result_in(payloads: Sequence[Payload], plain: Plain) -> Mapping[str, Outcome] | str:
    """Read the result of a recovery workflow, or say why it cannot be read.

    Raises:
        RecordError: It is no such result.
    """
    if not payloads:
        raise RecordError("a recovery workflow without a result")
    data, problem = plain.binary(payloads[0])
    return recovery.decode_result(data) if problem is None else problem


def payload_of(data: bytes) -> Payload:
    """Read a payload that stands in a record.

    Raises:
        RecordError: It is none.
    """
    try:
        return Payload.FromString(data)
    except DecodeError as err:
        raise RecordError("a record holds a payload that is damaged") from err


def _handed(each: Carried) -> HandedEntry:
    given = each.args if each.contract.undo_input == "args" else filter(None, [each.raw])
    return HandedEntry(each.key, each.contract.undo, [payload_of(data) for data in given])


def _bound(each: Carried) -> Carried:
    """Give an entry the contract that holds, whatever is declared now."""
    if each.undo_options is None:
        return each
    try:
        options = from_json(each.undo_options)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as err:
        raise RecordError("the recovery plan is damaged") from err
    return dataclasses.replace(
        each, contract=dataclasses.replace(each.contract, undo_options=options)
    )
