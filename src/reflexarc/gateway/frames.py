"""What the gateway and its System 1 process say to each other, and how it is framed.

A frame is two little-endian 32-bit lengths, a MessagePack head, and a body of raw bytes: request
and response bodies cross as they are, unparsed on the gateway's side.
"""

import struct
from typing import Literal

import msgspec

_LENGTHS = struct.Struct("<II")


class ReflexSource(msgspec.Struct, frozen=True):
    """Where a reflex comes from. `loader` is the dotted path `module:name` of what turns `path`
    into one; anything but the default is for tests of reflexes that misbehave."""

    name: str
    path: str
    loader: str = "reflexarc.reflex:Reflex.load"


class Setup(msgspec.Struct, frozen=True, tag=True):
    """First frame to the process. `niceness` is added to its own: where no route is live, nobody
    waits for it, and it must not take a core from the requests it looks at."""

    reflexes: list[ReflexSource]
    niceness: int = 0
    max_contexts: int = 512
    max_context_bytes: int = 256 * 1024 * 1024
    max_sessions: int = 1024
    max_session_bytes: int = 256 * 1024 * 1024
    max_depth: int = 128
    max_consecutive_acts: int = 20


class Decide(msgspec.Struct, frozen=True, tag=True):
    """A chat request's body to decide on. `respond` asks for the answer's bytes (live mode);
    without it the decision is kept until an `Observe` of the same id. Past `expires_s` nobody waits
    any more (0: never); it is a reading of `time.perf_counter`, which processes of one machine
    share."""

    id: int
    reflex: str
    tenant: bytes
    respond: bool
    max_error: float
    expires_s: float = 0.0


class Observe(msgspec.Struct, frozen=True, tag=True):
    """The body of what System 2 answered to the request of this id."""

    id: int
    status: int
    content_type: str
    content_encoding: str


class Native(msgspec.Struct, frozen=True, tag=True):
    """A body of the native endpoint. `max_errors`: by reflex, the largest error it may ask for,
    and what counts where it names none."""

    id: int
    tenant: bytes
    max_errors: dict[str, float]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Every reflex is loaded."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A reflex could not be loaded; the process ends."""

    code: str
    message: str


class Decided(msgspec.Struct, frozen=True, tag=True):
    """The body is the answer's bytes if asked for and `action` is act. `failed`: the reflex
    raised, and the decision is an escalation for that reason."""

    id: int
    action: Literal["act", "escalate"]
    reason: str
    tool: str = ""
    confidence: float = 0.0
    max_error: float = 0.0
    stream: bool = False
    failed: bool = False
    decide_ms: float = 0.0


class Observed(msgspec.Struct, frozen=True, tag=True):
    """`tool` is what System 1 would have called, or where it escalated what System 2 called."""

    id: int
    outcome: Literal["agree", "disagree", "escalate", "unreadable"]
    tool: str


class NativeReply(msgspec.Struct, frozen=True, tag=True):
    """The body is the HTTP answer's."""

    id: int
    status: int
    decision: str
    reason: str
    failed: bool = False


ToWorker = Setup | Decide | Observe | Native
FromWorker = Ready | Failed | Decided | Observed | NativeReply

_encoder = msgspec.msgpack.Encoder()
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def frame(head: ToWorker | FromWorker, body: bytes = b"") -> list[bytes]:
    """The pieces to write, so that a large body is not copied to be framed."""
    encoded = _encoder.encode(head)
    return [_LENGTHS.pack(len(encoded), len(body)) + encoded, body]


class FrameReader:
    """Feeds on chunks cut anywhere, gives whole frames as (head, body) bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        self._buffer += chunk
        frames: list[tuple[bytes, bytes]] = []
        position = 0
        view = memoryview(self._buffer)
        while len(self._buffer) - position >= _LENGTHS.size:
            head_length, body_length = _LENGTHS.unpack_from(self._buffer, position)
            start = position + _LENGTHS.size
            end = start + head_length + body_length
            if end > len(self._buffer):
                break
            frames.append(
                (bytes(view[start : start + head_length]), bytes(view[start + head_length : end]))
            )
            position = end
        view.release()
        del self._buffer[:position]
        return frames


def to_worker(head: bytes) -> ToWorker:
    return _to_worker.decode(head)


def from_worker(head: bytes) -> FromWorker:
    return _from_worker.decode(head)
