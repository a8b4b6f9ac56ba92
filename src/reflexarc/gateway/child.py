"""A process of our own at the other end of a socket: started, spoken to in frames, ended.

What such a process does, and what becomes of its work when it dies, is its owner's: `System1`
and `Recorder`.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import cast

import msgspec

from reflexarc.gateway.frames import FrameReader, frame_grown
from reflexarc.gateway.shortening import Shortening
from reflexarc.wire.growing import Grown

# A socket buffer that takes a usual body at once: the event loop then writes in one go.
_SOCKET_BUFFER_BYTES = 1024 * 1024


class Child:
    """One process running `module` with the number of its socket as its argument.

    It is to end when its standard input or its socket does. `on_frame` takes each frame's head and
    body; `on_lost` hears once that the connection is gone, unless `end` was called.
    """

    def __init__(
        self,
        module: str,
        on_frame: Callable[[bytes, bytes], None],
        on_lost: Callable[["Child"], None],
        hidden_variables: tuple[str, ...] = (),
    ) -> None:
        self._module = module
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._hidden_variables = hidden_variables
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: _Channel | None = None
        self._shortening = Shortening()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def is_connected(self) -> bool:
        return self._channel is not None

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._channel is None else self._channel.unsent_bytes

    async def launch(self) -> None:
        """Raises `OSError` where no process can be started."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                end.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER_BYTES)
        environment = {k: v for k, v in os.environ.items() if k not in self._hidden_variables}
        # Threads of a numerics library would fight the event loop for cores, for tiny matrices.
        environment.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", self._module, str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    env=environment,
                )
        except OSError:
            ours.close()
            raise
        channel = _Channel(self._on_frame, self._lost)
        self._channel = channel
        ours.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: channel, sock=ours)

    def write(self, pieces: list[bytes]) -> None:
        if self._channel is not None:
            self._channel.write(pieces)

    def write_grown(self, head: msgspec.Struct, grown: Grown, *more: bytes) -> None:
        """A head with the body of a request, of which only what is new crosses, and `more`."""
        if self._channel is not None:
            self._channel.write(frame_grown(self._shortening, head, grown, *more))

    async def drained(self) -> None:
        """Waits until all that was written has left this process, or the connection is gone."""
        while self._channel is not None and self._channel.unsent_bytes:
            await asyncio.sleep(0.01)

    async def left(self, within_s: float) -> bool:
        """Ends the connection once all is written, and waits for the process to end by itself."""
        channel, process = self._channel, self._process
        self._channel = None
        if channel is None or process is None:
            return True
        channel.finish()
        wait = asyncio.get_running_loop().run_in_executor(None, process.wait)
        done, _ = await asyncio.wait([wait], timeout=within_s)
        return bool(done)

    async def end(self) -> None:
        """Kills the process; nothing is heard of it any more."""
        channel, process = self._channel, self._process
        self._channel = self._process = None
        if channel is not None:
            channel.close()
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            process.kill()
            await asyncio.get_running_loop().run_in_executor(None, process.wait)

    def _lost(self, channel: "_Channel") -> None:
        if channel is self._channel:
            self._channel = None
            self._on_lost(self)


class _Channel(asyncio.Protocol):
    """Frames over the socket."""

    def __init__(
        self, on_frame: Callable[[bytes, bytes], None], on_lost: Callable[["_Channel"], None]
    ) -> None:
        self._reader = FrameReader()
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for head, body in self._reader.feed(data):
            self._on_frame(head, body)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        self._transport = None
        self._on_lost(self)

    @property
    def unsent_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, pieces: list[bytes]) -> None:
        if self._transport is not None:
            self._transport.writelines(pieces)

    def finish(self) -> None:
        """What is written still leaves; then the other side sees the end."""
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
