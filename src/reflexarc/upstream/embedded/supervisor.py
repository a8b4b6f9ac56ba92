"""Runs the engine's process beside a gateway: starts it, watches it, starts it anew.

The listening socket belongs to this side, so that the address outlives the process. While there is
none, requests are answered here: 503 with `retry-after`. A thread does all that; nothing of it
touches the gateway's event loop.
"""

import contextlib
import http.client
import logging
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.embedded.answer import ENGINE_HEADER, ENGINE_LABEL
from reflexarc.upstream.embedded.installed import model_path
from reflexarc.upstream.embedded.options import EngineOptions, Setup
from reflexarc.upstream.embedded.saved import DIRECTORY
from reflexarc.wire.errors import error_body

_log = logging.getLogger("reflexarc.embedded")

_PROCESS = "reflexarc.upstream.embedded.process"
State = Literal["starting", "up", "restarting", "off"]


class EmbeddedLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`start_s`: time to load the model. Every `look_s` it is asked for its health; without an
    answer within `hang_s` it is replaced. Pauses before a restart double from `first_pause_s` to
    `longest_pause_s`, and begin anew after `healthy_after_s` of running. At the end it has
    `stop_s` to save what its slots hold."""

    start_s: float = 60.0
    look_s: float = 1.0
    hang_s: float = 10.0
    first_pause_s: float = 0.1
    longest_pause_s: float = 30.0
    healthy_after_s: float = 30.0
    stop_s: float = 10.0


class Embedded:
    """`start`, then `close`; or use it in `with`. `base_url` is known from the beginning.

    `state_directory` is the gateway's: in a directory of its own there the engine saves what its
    slots hold. None: it saves nothing."""

    def __init__(
        self,
        limits: EmbeddedLimits | None = None,
        *,
        options: EngineOptions | None = None,
        state_directory: Path | None = None,
        hidden_variables: Sequence[str] = (),
        clock_s: Callable[[], float] = time.monotonic,
        command: Sequence[str] = (sys.executable, "-m", _PROCESS),
    ) -> None:
        """Raises `ConfigError` where the extra is not installed."""
        model_path()
        self.state: State = "off"
        self.restarts = 0
        self._limits = limits or EmbeddedLimits()
        self._hidden_variables = frozenset(hidden_variables)
        self._clock_s = clock_s
        self._command = command
        self._setup = Setup(
            options=options or EngineOptions(),
            directory=None if state_directory is None else str(state_directory / DIRECTORY),
        )
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.setblocking(False)
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="embedded engine", daemon=True)
        self._up_since_s = 0.0
        self._pause_s = self._limits.first_pause_s

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def _port(self) -> int:
        return self._listener.getsockname()[1]

    def __enter__(self) -> "Embedded":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Returns once it serves. Raises `ConfigError` where it does not get so far: then the
        machine cannot run it, and trying again would not help."""
        self.state = "starting"
        if not self._launch():
            self._end()
            self.state = "off"
            self._listener.close()
            raise ConfigError(
                f"the embedded engine was not ready within {self._limits.start_s:g} s, or ended "
                "before; what it said stands above"
            )
        self._thread.start()

    def close(self) -> None:
        """Ends the process, which saves its states first, and the address."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        self._end(within_s=self._limits.stop_s if self.state == "up" else 0.0)
        self.state = "off"
        self._listener.close()

    def _watch(self) -> None:
        while not self._closing.wait(self._limits.look_s):
            trouble = self._trouble()
            if trouble is not None and not self._closing.is_set():
                _log.error("the embedded engine %s; it is started anew", trouble)
                self._replace()

    def _trouble(self) -> str | None:
        process = self._process
        if process is None or process.poll() is not None:
            return "died"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, self._limits.hang_s)
        try:
            connection.request("GET", "/health")
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return "died" if process.poll() is not None else "gives no sign of life"
        finally:
            connection.close()
        return None if status == 200 else f"says {status} of its health"

    def _replace(self) -> None:
        self.state = "restarting"
        if self._clock_s() - self._up_since_s > self._limits.healthy_after_s:
            self._pause_s = self._limits.first_pause_s
        while not self._closing.is_set():
            self._end()
            self._refuse_for(self._pause_s)
            self._pause_s = min(self._pause_s * 2, self._limits.longest_pause_s)
            if self._closing.is_set():
                return
            self.restarts += 1
            if self._launch():
                return

    def _launch(self) -> bool:
        """Whether there is a process that serves now."""
        environment = {k: v for k, v in os.environ.items() if k not in self._hidden_variables}
        try:
            process = subprocess.Popen(
                [*self._command, str(self._listener.fileno()), _encoded(self._setup)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[self._listener.fileno()],
                env=environment,
            )
        except OSError as error:
            _log.error("the embedded engine cannot be started: %s", error)
            return False
        self._process = process
        assert process.stdout is not None
        if not self._refuse_for(self._limits.start_s, until=process.stdout.fileno()):
            return False
        if process.stdout.readline() != b"ready\n":  # the end of the stream, where it died
            return False
        self._up_since_s = self._clock_s()
        self.state = "up"
        return True

    def _end(self, within_s: float = 0.0) -> None:
        """At once, or after it ended by itself within that time."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        if within_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(within_s)
        process.kill()
        process.wait()

    def _refuse_for(self, seconds: float, until: int | None = None) -> bool:
        """Answers 503 to who comes, for so long or until that file can be read (then True)."""
        end_s = self._clock_s() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            if until is not None:
                selector.register(until, selectors.EVENT_READ)
            while (left_s := end_s - self._clock_s()) > 0 and not self._closing.is_set():
                for key, _ in selector.select(min(left_s, 0.2)):
                    if key.fileobj is not self._listener:
                        return True
                    self._refuse_one()
        return False

    def _refuse_one(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # taken by the process that is just coming up
            return
        with connection:
            connection.settimeout(0.5)
            try:
                connection.recv(65536)
                connection.sendall(_UNAVAILABLE)
                connection.shutdown(socket.SHUT_WR)
                # What is left unread would reset the connection before the answer is read.
                while connection.recv(65536):
                    pass
            except OSError:
                return


def _encoded(setup: Setup) -> str:
    return msgspec.json.encode(setup).decode()


def _unavailable() -> bytes:
    said = "the embedded engine is being started anew; try again in a second"
    body = error_body(503, said, code="engine_restarting")
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nretry-after: 1\r\nconnection: close\r\n"
        f"{ENGINE_HEADER}: {ENGINE_LABEL}\r\n\r\n"
    )
    return head.encode() + body


_UNAVAILABLE = _unavailable()
