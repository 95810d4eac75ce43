"""How worker, starter and demo reach Temporal."""

from __future__ import annotations

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig

from agboss_temporal import CompensationPlugin


async def connect() -> Client:
    """Connect as the environment says (``TEMPORAL_ADDRESS``…), else to a local server.

    The plugin is given here and nowhere else: workers made from this client have it too.
    """
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    return await Client.connect(
        **config,
        data_converter=pydantic_data_converter,
        plugins=[CompensationPlugin()],
    )
