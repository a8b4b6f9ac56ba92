"""Mends prompts on their way to System 2, so that they begin as the ones before them: only on
routes that ask for it. System 1, the store and the client know nothing of it."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from reflexarc.context.breakpoints import marked
from reflexarc.context.moving import OPENING, Moving, tail_of, with_texts
from reflexarc.context.tool_order import Orders, in_known_order
from reflexarc.context.volatile import template
from reflexarc.gateway.asgi import Headers
from reflexarc.gateway.config import Repair, Route
from reflexarc.gateway.planning import named_session
from reflexarc.gateway.prefixes import beginning_of
from reflexarc.steps.errors import MalformedError
from reflexarc.steps.forms import parsed
from reflexarc.wire.dialects import dialect
from reflexarc.wire.growing import Bodies, Grown
from reflexarc.wire.json import encode_json
from reflexarc.wire.members import ELSEWHERE, gives_any, with_member

Finish = Callable[[bytes, str], bytes]
_Read = Callable[[bytes], Grown]
MAX_SESSIONS = 4_096
MAX_BYTES = 32 * 1024 * 1024
"""Of the prompts that were mended last: what is made of the next is read as far as it is new."""
_SYSTEM = {
    "messages": ("system",),
    "responses": ("instructions",),
    "gemini": ("systemInstruction", "system_instruction"),
}
_SYSTEM_ROLES = frozenset({"system", "developer"})
_KEYED = frozenset({"chat", "responses"})


class Repaired(msgspec.Struct, frozen=True):
    """`prompt` is what a cache may keep, taken apart, `sent` that with what is told at its end.
    `names` of what was done. `finish` makes what an upstream of some dialect is sent of it."""

    prompt: Grown
    sent: bytes
    names: tuple[str, ...]
    finish: Finish


def as_it_is(outgoing: bytes, spoken: str) -> bytes:
    """Where nothing is mended."""
    del spoken
    return outgoing


class _Session(msgspec.Struct):
    orders: Orders = []
    moving: dict[str, Moving] = {}
    messages: int = 0


class PromptRepair:
    """Remembers, of the last 4,096 sessions, the order of tools and what moved."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._sessions: OrderedDict[tuple[bytes, str, str], _Session] = OrderedDict()
        self._bodies = Bodies(max_bytes=MAX_BYTES)

    def mended(
        self,
        route: Route,
        tenant: bytes,
        headers: Headers,
        named: str | None,
        client: str,
        body: bytes,
        grown: Grown | None = None,
    ) -> Repaired | None:
        """`named`: the session, where its client told us; `grown`: the body, or another, taken
        apart. None where the route asks for nothing or nothing can be done."""
        options = route.repair
        if not options.mends:
            return None

        def read(made: bytes, spoken: str = client) -> Grown:
            return self._bodies.read(tenant + spoken.encode(), dialect(spoken).conversation, made)

        if grown is None or grown.body is not body:
            try:
                grown = read(body)
            except MalformedError:
                return None  # who is asked judges
        if gives_any(grown.members, ELSEWHERE):
            return None
        session = named or named_session(headers, grown.members) or _opening(client, grown)
        held = self._held(tenant, route.path, session)
        names: list[str] = []
        if options.tool_order == "stable":
            grown = _ordered(grown, held.orders, names, read)
        sent = grown.body
        if options.volatile_system == "move":
            grown, sent = _moved(grown, client, held, names, read)
        reused, held.messages = held.messages, len(grown)
        key = self._key(tenant, session)

        def finish(outgoing: bytes, spoken: str) -> bytes:
            return _finished(outgoing, spoken, options, reused, key, read)

        return Repaired(grown, sent, tuple(names), finish)

    def _held(self, tenant: bytes, path: str, session: str) -> _Session:
        key = (tenant, path, session)
        held = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return held

    def _key(self, tenant: bytes, session: str) -> str:
        """What a provider is told of a session: nothing that anybody could guess."""
        named = tenant + b"\0" + session.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(named, key=self._secret[:64], digest_size=16).hexdigest()


def _opening(client: str, grown: Grown) -> str:
    """A conversation that nobody names is told by its first message."""
    opening = beginning_of(client, grown).opening
    return f"~{hashlib.blake2b(opening[-1], digest_size=12).hexdigest()}" if opening else "~"


def _finished(
    outgoing: bytes,
    spoken: str,
    options: Repair,
    reused: int,
    key: str,
    read: Callable[[bytes, str], Grown],
) -> bytes:
    marks = options.breakpoints == "auto" and spoken == "messages"
    keyed = options.prompt_cache_key == "session" and spoken in _KEYED
    if not marks and not keyed:
        return outgoing
    try:
        grown = read(outgoing, spoken)
    except MalformedError:
        return outgoing
    if marks:
        return marked(grown, reused, OPENING)
    if "prompt_cache_key" in grown.members:
        return outgoing
    return with_member(outgoing, "prompt_cache_key", encode_json(key), grown.members) or outgoing


def _ordered(grown: Grown, orders: Orders, names: list[str], read: _Read) -> Grown:
    raw = grown.members.get("tools")
    made = None if raw is None else in_known_order(bytes(raw), orders)
    body = None if made is None else with_member(grown.body, "tools", made, grown.members)
    if body is None:
        return grown
    names.append("tool_order")
    return read(body)


def _moved(
    grown: Grown, client: str, held: _Session, names: list[str], read: _Read
) -> tuple[Grown, bytes]:
    """The prompt without what moves, and what is sent: the same with that told at the end."""
    at, raw = _system_at(grown, client)
    if raw is None:
        return grown, grown.body
    try:
        value = parsed(raw)
    except ValueError:
        return grown, grown.body
    texts: list[str] = []
    with_texts(value, lambda text: texts.append(text) or text)
    moving = _moving_of(held, texts)
    moving.learn(texts)
    moved: list[str] = []

    def change(text: str) -> str:
        kept, gone = moving.split(text)
        moved.extend(gone)
        return kept

    kept = with_texts(value, change)
    if not moved or _is_bare(kept):
        return grown, grown.body
    prompt = _with_system(grown, at, encode_json(kept))
    if prompt is None:
        return grown, grown.body
    plain = read(prompt)
    sent = _with_tail(plain, client, tail_of(moved))
    if sent is None:
        return grown, grown.body
    names.append("volatile_system")
    return plain, sent


def _moving_of(held: _Session, texts: list[str]) -> Moving:
    """By how the system prompt begins: a session's agents have each their own."""
    opening = template("".join(texts)[:_OPENING_CHARS])[: _OPENING_CHARS // 2]
    moving = held.moving.setdefault(opening, Moving())
    while len(held.moving) > _MAX_AGENTS:
        del held.moving[next(iter(held.moving))]
    return moving


_MAX_AGENTS = 32
_OPENING_CHARS = 80


def _system_at(grown: Grown, client: str) -> tuple[str | int, bytes | None]:
    """The member, or the number of the message, that holds the system prompt; and it."""
    for name in _SYSTEM.get(client, ()):
        raw = grown.members.get(name)
        if raw is not None:
            return name, bytes(raw)
    if client in _KEYED and grown.listed and len(grown) and _role(grown.item(0)) in _SYSTEM_ROLES:
        return 0, grown.item(0)
    return 0, None


def _with_system(grown: Grown, at: str | int, raw: bytes) -> bytes | None:
    if isinstance(at, str):
        return with_member(grown.body, at, raw, grown.members)
    return grown.body[: grown.begins[at]] + raw + grown.body[grown.ends[at] :]


def _with_tail(grown: Grown, client: str, text: str) -> bytes | None:
    """None where the last message is the model's own: it goes on from there."""
    if not grown.listed or not len(grown):
        return None
    at = len(grown) - 1
    last, said, begin, end = grown.item(at), encode_json(text), grown.begins[at], grown.ends[at]
    if _role(last) in ("assistant", "model"):
        return None
    member, block, alone = _TAILS[client]
    whole = None
    if _role(last) == "user" and not any(name in last for name in _OF_TOOLS):
        whole = _in_message(last, member, block % said)
    if whole is None and client == "messages":
        return None
    if whole is None:
        return grown.body[:end] + b"," + alone % said + grown.body[end:]
    return grown.body[:begin] + whole + grown.body[end:]


_TAILS = {
    "messages": ("content", b'{"type":"text","text":%s}', b""),
    "chat": ("content", b'{"type":"text","text":%s}', b'{"role":"user","content":%s}'),
    "responses": (
        "content",
        b'{"type":"input_text","text":%s}',
        b'{"role":"user","content":[{"type":"input_text","text":%s}]}',
    ),
    "gemini": ("parts", b'{"text":%s}', b'{"role":"user","parts":[{"text":%s}]}'),
}
"""By dialect: the member of a message that holds its blocks, one, and a message of its own."""
_OF_TOOLS = (b'"functionResponse"', b'"function_response"')
"""In Gemini's turns of results nothing else may stand."""


def _in_message(message: bytes, member: str, block: bytes) -> bytes | None:
    """A block at the end of a message."""
    members = _object.decode(message)
    content = bytes(members.get(member, b"")).strip()
    if content.startswith(b'"'):
        kind = b"input_text" if b"input_text" in block else b"text"
        made = b'[{"type":"%s","text":%s},%s]' % (kind, content, block)
    elif content.startswith(b"["):
        inner = content[1:-1].strip()
        made = b"[" + inner + (b"," if inner else b"") + block + b"]"
    else:
        return None
    return with_member(message, member, made, members)


class _Spoken(msgspec.Struct):
    role: Any = None


_spoken = msgspec.json.Decoder(_Spoken)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _role(message: bytes) -> str:
    try:
        role = _spoken.decode(message).role
    except (msgspec.MsgspecError, RecursionError):
        return ""
    return role if isinstance(role, str) else ""


def _is_bare(value: Any) -> bool:
    """Whether nothing is left of a system prompt: some upstreams take no empty one."""
    found: list[str] = []
    with_texts(value, lambda text: found.append(text) or text)
    return not "".join(found).strip()
