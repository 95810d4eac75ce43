"""Every private symbol of the Temporal SDK that this package leans on, and nothing else.

`verify` is called when a worker is constructed, so that an SDK that has moved one of them is
refused with a message instead of failing in a workflow.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import temporalio.activity
import temporalio.workflow
from temporalio.exceptions import CancelledError
from temporalio.worker import _workflow_instance

HandlerKind: TypeAlias = Literal["update", "signal"]


@dataclass(frozen=True, slots=True)
class Definition:
    """What the SDK knows of a registered activity or workflow."""

    name: str | None
    arg_types: list[type] | None
    ret_type: type | None


def activity_definition(fn: Any) -> Definition | None:
    """Return the definition of an activity callable, or ``None`` if it is not one."""
    found = temporalio.activity._Definition.from_callable(fn)
    return None if found is None else Definition(found.name, found.arg_types, found.ret_type)


def workflow_definition(cls: Any) -> Definition | None:
    """Return the definition of a workflow class, or ``None`` if it is not one."""
    if not isinstance(cls, type):
        return None
    found = temporalio.workflow._Definition.from_class(cls)
    return None if found is None else Definition(found.name, found.arg_types, found.ret_type)


def history_length(loop: asyncio.AbstractEventLoop) -> int:
    """Return the length of the history that a workflow's loop works on, callable at any time."""
    return int(loop.workflow_get_current_history_length())  # type: ignore[attr-defined]


def has_more_to_do(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether a workflow's loop has callbacks waiting besides the one that asks."""
    return bool(loop._ready)  # type: ignore[attr-defined]


def is_abandoned(loop: asyncio.AbstractEventLoop, kind: HandlerKind, name: str) -> bool:
    """Tell whether a run may close while a handler of this name is at work."""
    known: Any = loop._updates if kind == "update" else loop._signals  # type: ignore[attr-defined]
    handler = known.get(name) or known.get(None)
    abandon = temporalio.workflow.HandlerUnfinishedPolicy.ABANDON
    return handler is not None and handler.unfinished_policy == abandon


class Observation:
    """Watches one activity or child handle.

    The settling event is reported while the SDK applies it: in history order, before any
    workflow code runs, and also when the handle itself was cancelled in the same workflow task.

    Args:
        handle: The SDK's handle.
        on_success: Called with the decoded result; may return an error that whoever awaits the
            handle is given instead.
        on_failure: Called with the error.
    """

    def __init__(
        self,
        handle: Any,
        on_success: Callable[[Any], BaseException | None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._handle = weakref.ref(handle)  # It holds this object; a cycle would outlive the call.
        self._on_success = on_success
        self._on_failure = on_failure
        self._released = False
        settled = handle._result_fut
        if settled.done():
            if settled.exception() is None:
                on_success(settled.result())
            else:
                on_failure(settled.exception())
            return
        handle._resolve_success = self._succeeded
        handle._resolve_failure = self._failed

    def release(self) -> None:
        """Let whoever awaits the handle go now; the call itself stays under observation."""
        handle = self._handle()
        if handle is None or self._released or handle._result_fut.done():
            return
        self._released = True
        handle.add_done_callback(_retrieve)
        handle._result_fut.set_exception(CancelledError("Cancelled"))

    def _succeeded(self, result: Any) -> None:
        handle = self._let_go()
        instead = self._on_success(result)
        if self._released:
            return
        if instead is None:
            handle._resolve_success(result)
        else:
            handle.add_done_callback(_retrieve)
            handle._resolve_failure(instead)

    def _failed(self, error: BaseException) -> None:
        handle = self._let_go()
        self._on_failure(error)
        if not self._released:
            handle._resolve_failure(error)

    def _let_go(self) -> Any:
        """Give the handle its own methods back; the caller, the SDK, keeps it alive."""
        handle: Any = self._handle()
        del handle._resolve_success, handle._resolve_failure
        return handle


def _retrieve(handle: asyncio.Future[Any]) -> None:
    if not handle.cancelled():
        handle.exception()


def verify() -> list[str]:
    """List the symbols that the installed SDK no longer has."""
    wanted: list[tuple[Any, str]] = [
        (temporalio.activity, "_Definition"),
        (temporalio.workflow, "_Definition"),
        (temporalio.workflow, "_SignalDefinition"),
        (temporalio.workflow, "_UpdateDefinition"),
        (_workflow_instance, "_WorkflowInstanceImpl"),
        (_workflow_instance, "_ActivityHandle"),
        (_workflow_instance, "_ChildWorkflowHandle"),
    ]
    missing = [f"{owner.__name__}.{name}" for owner, name in wanted if not hasattr(owner, name)]
    if missing:
        return missing
    members: list[tuple[Any, str]] = [
        (temporalio.activity._Definition, "from_callable"),
        (temporalio.workflow._Definition, "from_class"),
        (_workflow_instance._WorkflowInstanceImpl, "workflow_get_current_history_length"),
    ]
    for handle in (_workflow_instance._ActivityHandle, _workflow_instance._ChildWorkflowHandle):
        members += [(handle, "_resolve_success"), (handle, "_resolve_failure")]
        if "_result_fut" not in handle.__init__.__code__.co_names:
            missing.append(f"{handle.__name__}._result_fut")
    of_instance = _workflow_instance._WorkflowInstanceImpl.__init__.__code__.co_names
    missing += [
        f"_WorkflowInstanceImpl.{name}"
        for name in ("_ready", "_updates", "_signals")
        if name not in of_instance
    ]
    missing += [
        f"{definition.__name__}.unfinished_policy"
        for definition in (
            temporalio.workflow._SignalDefinition,
            temporalio.workflow._UpdateDefinition,
        )
        if "unfinished_policy" not in definition.__annotations__
    ]
    return missing + [f"{c.__name__}.{name}" for c, name in members if not hasattr(c, name)]
