"""Takes over a changed configuration without dropping a request.

A second gateway is started beside the one at work; once it serves, new requests are its, and the
one before ends when the last request it took has ended. What was measured of deployments, and what
was counted, goes on. A configuration that cannot be used changes nothing.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from reflexarc.gateway.app import Gateway
from reflexarc.gateway.asgi import Headers, Receive, Scope, Send
from reflexarc.gateway.config import GatewayConfig
from reflexarc.steps.errors import ReflexarcError

_log = logging.getLogger("reflexarc.gateway")
FIXED = ("host", "port", "state", "tls", "engine")
"""What takes a restart: the socket is open, the store is, and the engine runs."""


class Reloading:
    """An ASGI application: the gateway of the newest configuration. `read` reads that anew, and
    raises `ConfigError`; `gateway_of` makes a gateway that goes on from the one before."""

    def __init__(
        self,
        gateway: Gateway,
        read: Callable[[], GatewayConfig] | None,
        gateway_of: Callable[[GatewayConfig, Gateway], Gateway],
    ) -> None:
        self.current = gateway
        self._read = read
        self._gateway_of = gateway_of
        self._inside: dict[Gateway, int] = {}
        self._empty: dict[Gateway, asyncio.Event] = {}
        self._retiring: set[asyncio.Task[Any]] = set()
        self._lock = asyncio.Lock()

    @property
    def config(self) -> GatewayConfig:
        return self.current.config

    def refusal(self, status: int, message: str, code: str) -> tuple[Headers, bytes]:
        return self.current.refusal(status, message, code)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gateway = self.current
        self._inside[gateway] = self._inside.get(gateway, 0) + 1
        try:
            await gateway(scope, receive, send)
        finally:
            self._inside[gateway] -= 1
            if not self._inside[gateway]:
                del self._inside[gateway]
                waiting = self._empty.get(gateway)
                if waiting is not None:
                    waiting.set()

    async def reload(self) -> bool:
        """Whether the configuration was taken over. Never raises: what is wrong is logged."""
        if self._read is None:
            return False
        async with self._lock:
            old = self.current
            try:
                config = _kept(self._read(), old.config)
                gateway = self._gateway_of(config, old)
            except ReflexarcError as error:
                _log.error("the configuration stays as it was: %s", error)
                return False
            try:
                await gateway.start()
            except (ReflexarcError, OSError) as error:
                _log.error("the configuration stays as it was: %s", error)
                await gateway.close()
                return False
            self.current = gateway
            task = asyncio.get_running_loop().create_task(self._retire(old))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
            _log.warning("the configuration was read again, and is in use")
            return True

    async def close(self) -> None:
        """Whoever is still at work is closed."""
        for task in list(self._retiring):
            task.cancel()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        await self.current.close()

    async def _retire(self, gateway: Gateway) -> None:
        if gateway in self._inside:
            event = self._empty[gateway] = asyncio.Event()
            with contextlib.suppress(asyncio.CancelledError):
                await event.wait()
            del self._empty[gateway]
        await gateway.close()


def _kept(new: GatewayConfig, old: GatewayConfig) -> GatewayConfig:
    changed = [name for name in FIXED if getattr(new, name) != getattr(old, name)]
    if changed:
        _log.warning("%s: changed, but that takes a restart", ", ".join(changed))
    return msgspec.structs.replace(new, **{name: getattr(old, name) for name in FIXED})
