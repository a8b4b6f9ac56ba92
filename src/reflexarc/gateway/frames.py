"""What the gateway and its System 1 process say to each other, and how it is framed.

A frame is two little-endian 32-bit lengths, a MessagePack head, and a body of raw bytes: request
and response bodies cross as they are, unparsed on the gateway's side. Where the first length has
its highest bit set, a plan stands between lengths and head of how the body is made of one that
crossed before (`shortening`).
"""

import struct
from typing import Literal

import msgspec

from reflexarc.gateway.shortening import PLAN, Lengthening, Shortening
from reflexarc.reflex.decision import Guarantee
from reflexarc.steps import Effect
from reflexarc.store.records import Prediction
from reflexarc.wire.growing import Grown

_LENGTHS = struct.Struct("<II")
_PLANNED = 1 << 31
DEFAULT_LOADER = "reflexarc.reflex:Reflex.load"


class ReflexSource(msgspec.Struct, frozen=True):
    """Where a reflex comes from, and the effects declared for its tools. `loader` is the dotted
    path `module:name` of what turns `path` into one; anything but the default is for tests of
    reflexes that misbehave. `standby`: held ready for a rollback; done without where it cannot be
    loaded."""

    name: str
    path: str
    loader: str = DEFAULT_LOADER
    effects: dict[str, Effect] = {}
    standby: bool = False


class Setup(msgspec.Struct, frozen=True, tag=True):
    """First frame to the process. `niceness` is added to its own: where no route is live, nobody
    waits for it, and it must not take a core from the requests it looks at. `secret` keys the draws
    of sessions and of audits, which no client may foresee."""

    reflexes: list[ReflexSource]
    niceness: int = 0
    max_contexts: int = 512
    max_context_bytes: int = 256 * 1024 * 1024
    max_sessions: int = 1024
    max_session_bytes: int = 256 * 1024 * 1024
    max_depth: int = 128
    max_consecutive_acts: int = 20
    secret: bytes = b""


class Decide(msgspec.Struct, frozen=True, tag=True):
    """A request's body to decide on, in the dialect `dialect`; `model` and `stream` are what its
    URL says, where its body does not. `respond` asks for the answer's bytes (live mode). The
    decision is kept until an `Observe` of the same id. Past `expires_s` nobody waits any more (0:
    never); it is a reading of `time.perf_counter`, which processes of one machine share.

    `session` names the conversation where the client did. Of all sessions the share `canary` may
    be acted for. `writes` names the tools whose writes may act. `tested` names the models
    whose provider takes turns without thinking between turns with it. `partial`: where only free
    text is missing, say so."""

    id: int
    reflex: str
    tenant: bytes
    respond: bool
    max_error: float
    expires_s: float = 0.0
    session: str | None = None
    canary: float = 1.0
    writes: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    partial: bool = False
    dialect: str = "chat"
    model: str = ""
    stream: bool = False


class Observe(msgspec.Struct, frozen=True, tag=True):
    """The body of what System 2 answered to the request of this id, in the dialect it speaks."""

    id: int
    status: int
    content_type: str
    content_encoding: str
    dialect: str = "chat"


class Native(msgspec.Struct, frozen=True, tag=True):
    """A body of the native endpoint. `max_errors`: by reflex, the largest error it may ask for,
    and what counts where it names none; `may_not`: by reflex, why it may not act now; `tools_off`
    are switched off for all; `sources`: by reflex, the version that answers for it, where it is not
    the one of that name."""

    id: int
    tenant: bytes
    max_errors: dict[str, float]
    may_not: dict[str, str] = {}
    tools_off: tuple[str, ...] = ()
    sources: dict[str, str] = {}


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Reflexes are loaded: `digests` of their files by name. `unusable` says of the others why they
    are not."""

    unusable: dict[str, str] = {}
    digests: dict[str, str] = {}


class Decided(msgspec.Struct, frozen=True, tag=True):
    """The body is the answer's bytes if asked for and `action` is act. `tools` are those of all
    calls made together, `tool` stands for them: the only one, or `SEVERAL`. `failed`: the reflex
    raised, and the decision is an escalation for that reason. Of an act: `key` stands for request
    and reflex (the call's id is cut from it), `reflex` is the artifact's digest, `call` the digest
    of tool and arguments, `writes` whether the call is more than a read. `draw`, in [0, 1), decides
    with the share of audits on `audit`: whether System 2 is to be asked as well. `session` stands
    for the conversation, `variant` for the prompt, model or schemas that are not those learned."""

    id: int
    action: Literal["act", "partial", "escalate"]
    reason: str
    tool: str = ""
    confidence: float = 0.0
    max_error: float = 0.0
    stream: bool = False
    failed: bool = False
    decide_ms: float = 0.0
    key: str = ""
    reflex: str = ""
    call: str = ""
    guarantee: Guarantee | None = None
    audit: bool = False
    prompt_tokens: int = 0
    writes: bool = False
    draw: float = 1.0
    session: bytes = b""
    variant: bytes = b""
    tools: tuple[str, ...] = ()


class Observed(msgspec.Struct, frozen=True, tag=True):
    """`tool` is what System 1 would have called, or where it escalated what System 2 called.
    `thinks` names the model where its answer carried thinking. `predictions`: one per call of
    System 2's, or for its message."""

    id: int
    outcome: Literal["agree", "disagree", "escalate", "unreadable"]
    tool: str
    predictions: list[Prediction] = []
    thinks: str = ""


class NativeReply(msgspec.Struct, frozen=True, tag=True):
    """The body is the HTTP answer's. `acted` says of an act or a partial what the trail keeps, and
    `reflex` under which name it was made."""

    id: int
    status: int
    decision: str
    reason: str
    failed: bool = False
    reflex: str = ""
    acted: Decided | None = None


ToWorker = Setup | Decide | Observe | Native
FromWorker = Ready | Decided | Observed | NativeReply

_encoder = msgspec.msgpack.Encoder()
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def frame(head: ToWorker | FromWorker, body: bytes = b"") -> list[bytes]:
    """The pieces to write, so that a large body is not copied to be framed."""
    return frame_of(head, body)


def frame_of(head: msgspec.Struct, *bodies: bytes) -> list[bytes]:
    """The same for a head of any kind; several bodies cross as one."""
    encoded = _encoder.encode(head)
    return [_LENGTHS.pack(len(encoded), sum(map(len, bodies))) + encoded, *bodies]


def frame_grown(
    shortening: Shortening, head: msgspec.Struct, grown: Grown, *more: bytes
) -> list[bytes]:
    """A frame whose body is that of a request, of which only what is new crosses, and `more`."""
    encoded = _encoder.encode(head)
    plan, rest = shortening.plan(grown)
    size = len(rest) + sum(map(len, more))
    return [_LENGTHS.pack(len(encoded) | _PLANNED, size) + plan + encoded, rest, *more]


class FrameReader:
    """Feeds on chunks cut anywhere, gives whole frames as (head, body) bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._lengthening = Lengthening()

    def feed(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        self._buffer += chunk
        frames: list[tuple[bytes, bytes]] = []
        position = 0
        view = memoryview(self._buffer)
        while len(self._buffer) - position >= _LENGTHS.size:
            head_length, body_length = _LENGTHS.unpack_from(self._buffer, position)
            plan_length = PLAN.size if head_length & _PLANNED else 0
            plan_at = position + _LENGTHS.size
            start = plan_at + plan_length
            split = start + (head_length & ~_PLANNED)
            end = split + body_length
            if end > len(self._buffer):
                break
            body = bytes(view[split:end])
            if plan_length:
                body = self._lengthening.body(bytes(view[plan_at:start]), body)
            frames.append((bytes(view[start:split]), body))
            position = end
        view.release()
        del self._buffer[:position]
        return frames


def to_worker(head: bytes) -> ToWorker:
    return _to_worker.decode(head)


def from_worker(head: bytes) -> FromWorker:
    return _from_worker.decode(head)
