"""How worker, starter and demo reach Temporal."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime

from agboss_temporal import CompensationPlugin


async def connect(
    plugins: Sequence[Plugin] | None = None, *, runtime: Runtime | None = None
) -> Client:
    """Connect as the environment says (``TEMPORAL_ADDRESS``…), else to a local server.

    The plugin is given here and nowhere else: workers made from this client have it too.

    Args:
        plugins: Others in its place.
        runtime: What the client and its workers run on, if not on the SDK's own.
    """
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    return await Client.connect(
        **config,
        data_converter=pydantic_data_converter,
        plugins=[CompensationPlugin()] if plugins is None else plugins,
        runtime=runtime,
    )
