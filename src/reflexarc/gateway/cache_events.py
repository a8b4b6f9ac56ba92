"""Listens to what vLLM servers tell of their prefix caches (`kv_events`), so that what they evicted
is not taken for held. Needs pyzmq, which is installed with nothing else of ours."""

import asyncio
import contextlib
import importlib
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from reflexarc.steps.errors import ConfigError, MalformedError
from reflexarc.upstream.affinity import Affinity
from reflexarc.upstream.fleet import Fleet
from reflexarc.upstream.kv_events import MAX_BATCH_BYTES, Blocks, read_batch, sequence_of

_log = logging.getLogger("reflexarc.gateway")
_FRAMES = 3
"""Topic, number, batch."""
_MAX_QUEUED = 10_000


class CacheEvents:
    """`start` it in a running event loop, `close` it there."""

    def __init__(self, fleet: Fleet, affinity: Affinity, clock_s: Callable[[], float]) -> None:
        """Raises `ConfigError` where events are to be listened to and pyzmq is not installed."""
        self._affinity = affinity
        self._clock_s = clock_s
        self._names: dict[str, list[str]] = defaultdict(list)
        for one in fleet.all():
            if one.deployment.kv_events:
                self._names[one.deployment.kv_events].append(one.deployment.name)
        self._zmq: Any = _zmq() if self._names else None
        self._context: Any = None
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Nothing runs where nobody is to be listened to."""
        if self._zmq is None:
            return
        self._context = self._zmq.asyncio.Context()
        self._tasks = [
            asyncio.create_task(self._listen(endpoint, names), name=f"events of {endpoint}")
            for endpoint, names in self._names.items()
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks = []
        if self._context is not None:
            self._context.destroy(linger=0)
            self._context = None

    async def _listen(self, endpoint: str, names: list[str]) -> None:
        """A server that is not there yet, or again, is connected to by the library."""
        socket = self._context.socket(self._zmq.SUB)
        socket.setsockopt(self._zmq.RCVHWM, _MAX_QUEUED)
        socket.setsockopt(self._zmq.MAXMSGSIZE, MAX_BATCH_BYTES)
        socket.setsockopt(self._zmq.SUBSCRIBE, b"")
        socket.connect(endpoint)
        blocks, numbers, malformed = Blocks(), Numbers(), False
        while True:
            frames: list[bytes] = await socket.recv_multipart()
            now_s = self._clock_s()
            try:
                if len(frames) != _FRAMES:
                    raise MalformedError(f"{len(frames)} frames where there should be {_FRAMES}")
                gone_s = blocks.take(read_batch(frames[2]), now_s)
            except MalformedError as error:
                if not malformed:
                    _log.warning("%s tells of its cache what cannot be read: %s", endpoint, error)
                malformed = True
                continue
            if numbers.began_anew(frames[1]):
                gone_s = now_s
            if gone_s is not None:
                for name in names:
                    self._affinity.emptied(name, gone_s)


class Numbers:
    """The numbers of one server's messages."""

    def __init__(self) -> None:
        self._last: int | None = None

    def began_anew(self, frame: bytes) -> bool:
        """Whether they begin anew with this one: it is another process, and holds nothing that was
        read before."""
        number, before = sequence_of(frame), self._last
        if number is None:
            return False
        self._last = number
        return before is not None and number < before


def _zmq() -> Any:
    try:
        importlib.import_module("zmq.asyncio")
        return importlib.import_module("zmq")
    except ImportError as error:
        raise ConfigError(
            "kv_events needs pyzmq, which is not installed: pip install pyzmq, or leave kv_events "
            "out"
        ) from error
