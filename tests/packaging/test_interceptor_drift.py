"""Every method that the SDK offers to interceptors is overridden, or left to it on purpose."""

from __future__ import annotations

import pytest
from temporalio.worker import (
    ActivityInboundInterceptor,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

from agboss_temporal.interceptors import CompensationInterceptor
from agboss_temporal_interceptors.activity import CompensationActivityInbound
from agboss_temporal_interceptors.workflow import (
    CompensationWorkflowInbound,
    CompensationWorkflowOutbound,
)

LEFT_TO_THE_SDK: list[tuple[type, type, set[str]]] = [
    (CompensationInterceptor, Interceptor, {"intercept_nexus_operation"}),
    (CompensationActivityInbound, ActivityInboundInterceptor, {"init"}),
    (
        CompensationWorkflowInbound,
        WorkflowInboundInterceptor,
        {"handle_query", "handle_update_validator"},
    ),
    (
        CompensationWorkflowOutbound,
        WorkflowOutboundInterceptor,
        {
            "info",
            "signal_child_workflow",
            "signal_external_workflow",
            "start_nexus_operation",
            "start_signal_with_start_workflow",
            "start_system_nexus_operation",
        },
    ),
]


def offered(sdk: type) -> set[str]:
    return {
        name
        for cls in sdk.__mro__
        if cls is not object
        for name, value in vars(cls).items()
        if callable(value) and not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("ours", "sdk", "left"), LEFT_TO_THE_SDK, ids=[sdk.__name__ for _, sdk, _ in LEFT_TO_THE_SDK]
)
def test_nothing_that_the_sdk_offers_is_overlooked(ours: type, sdk: type, left: set[str]) -> None:
    assert issubclass(ours, sdk)
    overridden = {
        name
        for cls in ours.__mro__
        if cls not in sdk.__mro__
        for name in vars(cls)
        if name in offered(sdk)
    }
    assert offered(sdk) - overridden == left
