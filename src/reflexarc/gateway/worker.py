"""System 1's process: `python -m reflexarc.gateway.worker FD`, started by the gateway.

It reads frames from the socket FD, one after the other, and answers each. It ends when its gateway
does: at the end of the socket, or of standard input, which is watched from a second thread so that
a reflex that hangs ends too.
"""

import gc
import hashlib
import importlib
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from reflexarc.gateway.deciding import Decider, Loaded
from reflexarc.gateway.frames import (
    Decide,
    Decided,
    FrameReader,
    FromWorker,
    Native,
    NativeReply,
    Observe,
    Ready,
    ReflexSource,
    Setup,
    ToWorker,
    frame,
    to_worker,
)
from reflexarc.gateway.native import NativeDesk
from reflexarc.steps.errors import ReflexarcError

_log = logging.getLogger("reflexarc.system1")


def main() -> None:
    # An interrupt from the terminal reaches the whole group; the gateway decides when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_gateway, daemon=True).start()
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.setblocking(True)
    try:
        _serve(channel)
    except (BrokenPipeError, ConnectionResetError):
        return  # the gateway is gone


def _end_with_gateway() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _serve(channel: socket.socket) -> None:
    reader = FrameReader()
    answering: _Answering | None = None
    while chunk := channel.recv(1 << 18):
        for head, body in reader.feed(chunk):
            message = to_worker(head)
            if isinstance(message, Setup):
                answering = _start(channel, message)
            elif answering is not None:
                reply, reply_body = answering.answer(message, body)
                if reply is not None:
                    _send(channel, reply, reply_body)


def _start(channel: socket.socket, setup: Setup) -> "_Answering":
    reflexes: dict[str, Loaded] = {}
    unusable: dict[str, str] = {}
    for source in setup.reflexes:
        try:
            reflexes[source.name] = load(source)
        except (ReflexarcError, OSError) as error:
            if source.standby:
                _log.warning("%s cannot be held ready for a rollback: %s", source.path, error)
            else:
                unusable[source.name] = str(error)
    if hasattr(os, "nice"):
        os.nice(setup.niceness)
    answering = _Answering(Decider(reflexes, setup, time.perf_counter, time.time), setup)
    gc.collect()
    gc.freeze()  # what is loaded stays; collections need not look at it again
    _send(channel, Ready(unusable, {name: one.digest.hex() for name, one in reflexes.items()}))
    return answering


def load(source: ReflexSource) -> Loaded:
    """Raises an `ArtifactError` that names the file, or `OSError`."""
    module_name, _, attribute = source.loader.partition(":")
    loader: Any = importlib.import_module(module_name)
    for part in attribute.split("."):
        loader = getattr(loader, part)
    path = Path(source.path)
    content = path.read_bytes() if path.exists() else source.path.encode()
    try:
        reflex = loader(source.path)
        if source.effects:
            reflex = reflex.with_effects(source.effects)
    except ReflexarcError as error:
        raise type(error)(f"{source.path}: {error}") from error
    return Loaded(reflex, hashlib.blake2b(content, digest_size=16).digest())


class _Answering:
    def __init__(self, decider: Decider, setup: Setup) -> None:
        self._decider = decider
        self._native = NativeDesk(decider, setup, time.perf_counter)

    def answer(self, message: ToWorker, body: bytes) -> tuple[FromWorker | None, bytes]:
        """Whatever a reflex raises becomes an escalation: System 2 is there."""
        try:
            if isinstance(message, Decide):
                return self._decider.decide(message, body)
            if isinstance(message, Native):
                return self._native.answer(message, body)
            if isinstance(message, Observe):
                return self._decider.observe(message, body), b""
        except Exception as error:  # any fault of System 1 is an escalation, said aloud
            _log.error("%s", _place(error))
            if isinstance(message, Decide):
                return Decided(message.id, "escalate", "system1_error", failed=True), b""
            if isinstance(message, Native):
                return NativeReply(message.id, 200, "escalate", "system1_error", failed=True), b""
        return None, b""


def _place(error: Exception) -> str:
    """Kind and place of an error without its message, which may quote a conversation."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f"{last.filename}:{last.lineno} in {last.name}" if last else "nowhere"
    return f"System 1 raised {type(error).__name__} at {where}; the request escalates"


def _send(channel: socket.socket, head: FromWorker, body: bytes = b"") -> None:
    channel.sendall(b"".join(frame(head, body)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    main()
