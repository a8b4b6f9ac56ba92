"""Opens the connections that routes and providers want open before their first request."""

import asyncio
import logging

import yarl

from reflexarc.gateway.config import GatewayConfig
from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream import Transport
from reflexarc.upstream.providers import KINDS

_log = logging.getLogger("reflexarc.gateway")


async def warm_up(transport: Transport, config: GatewayConfig) -> None:
    """An upstream that is not there yet is said aloud, and does not keep the gateway from
    starting."""
    routes = [
        (f"route {one.path}", one.upstream, one.warm_connections)
        for one in config.route
        if not one.pooled
    ]
    providers = [
        (f"provider {name}", place or KINDS[one.kind].url or "", one.warm_connections)
        for name, one in config.provider.items()
        for place in one.places
    ]
    await asyncio.gather(
        *(_warm(transport, *one) for one in (*routes, *providers) if one[1] and one[2] > 0)
    )


async def _warm(transport: Transport, what: str, url: str, count: int) -> None:
    try:
        await transport.warm(yarl.URL(url), count)
    except UpstreamError as error:
        _log.warning("%s starts without warm connections: %s", what, error)
