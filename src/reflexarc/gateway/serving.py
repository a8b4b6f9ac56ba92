"""Runs a gateway on a socket until it is told to stop; requests in flight get their grace."""

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable
from types import FrameType

import uvicorn

from reflexarc.gateway.app import Gateway
from reflexarc.gateway.config import GatewayConfig
from reflexarc.gateway.protocol import protocol_of
from reflexarc.gateway.reloading import Reloading
from reflexarc.steps.errors import ConfigError


def listen(host: str, port: int) -> socket.socket:
    """Raises `ConfigError` where the address cannot be had. Port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return listener


def serve(
    gateway: Gateway,
    listener: socket.socket,
    on_ready: Callable[[], None],
    tls: ssl.SSLContext | None = None,
    read: Callable[[], GatewayConfig] | None = None,
) -> None:
    """Returns after SIGINT or SIGTERM, when requests in flight are done or out of grace. SIGHUP
    takes over what `read` gives, where there is a file to be read again.

    Raises the `ArtifactError` that starting System 1 raised.
    """
    import uvloop  # absent on Windows, where nothing else of this module is missed

    serving = Reloading(gateway, read, lambda config, old: Gateway(config, before=old))
    server = uvicorn.Server(server_config(serving, tls))

    def stop(number: int, frame: FrameType | None) -> None:
        # While it serves, the server has handlers of its own; it raises the signal again once it
        # has stopped. Before and after, this one keeps the default from ending the process.
        del number, frame
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(serving, server, listener, on_ready, reloads=read is not None))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _serve(
    serving: Reloading,
    server: uvicorn.Server,
    listener: socket.socket,
    on_ready: Callable[[], None],
    *,
    reloads: bool,
) -> None:
    tasks: set[asyncio.Task[bool]] = set()

    def reload() -> None:
        task = asyncio.get_running_loop().create_task(serving.reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        await serving.current.start()
        if reloads:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
        on_ready()
        await server.serve(sockets=[listener])
    finally:
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await serving.close()


def server_config(
    gateway: Gateway | Reloading, tls: ssl.SSLContext | None = None
) -> uvicorn.Config:
    """How the server is set up, but for its loop and its socket."""

    def given_context(_: uvicorn.Config, __: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        assert tls is not None
        return tls

    return uvicorn.Config(
        gateway,  # pyright: ignore[reportArgumentType] - its scope is typed as any mapping
        http=protocol_of(gateway.config.limits.header_bytes, gateway.refusal),
        ssl_context_factory=None if tls is None else given_context,
        ws="none",
        lifespan="off",
        proxy_headers=False,  # nothing here depends on who the client is
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        # Upstreams and load balancers keep connections longer than the usual five seconds.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(gateway.config.grace_s)),
    )
