"""Opens the connections that routes want open before their first request."""

import asyncio
import logging
from collections.abc import Sequence

import yarl

from reflexarc.gateway.config import Route
from reflexarc.steps.errors import UpstreamError
from reflexarc.upstream import Transport

_log = logging.getLogger("reflexarc.gateway")


async def warm_up(transport: Transport, routes: Sequence[Route]) -> None:
    """An upstream that is not there yet is said aloud, and does not keep the gateway from
    starting."""
    await asyncio.gather(
        *(_warm(transport, route) for route in routes if route.warm_connections > 0)
    )


async def _warm(transport: Transport, route: Route) -> None:
    try:
        await transport.warm(yarl.URL(route.upstream), route.warm_connections)
    except UpstreamError as error:
        _log.warning("route %s starts without warm connections: %s", route.path, error)
