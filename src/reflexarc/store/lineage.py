"""Which session a request belongs to: known by the chain of its messages' meaning.

Call ids, key order and cache marks do not count, since clients change them; what was said does.
Each digest is keyed: without the secret nobody can tell by trying whether something was said.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from reflexarc.steps import Message, canonical_json
from reflexarc.steps.errors import InputError
from reflexarc.wire.chat import message_from_chat
from reflexarc.wire.chat_answer import is_own_call
from reflexarc.wire.json import decode_strict
from reflexarc.wire.sent import Pieces

START = ""
_MAX_KNOWN = 50_000


class Keyed:
    """Hashes under the state directory's secret: 32 hexadecimal digits, 16 for a value."""

    def __init__(self, secret: bytes) -> None:
        self._key = secret[:64]

    def hash(self, *parts: str) -> str:
        text = "\x1f".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._key, digest_size=16).hexdigest()

    def value(self, value: Any) -> str:
        return self.hash("value", canonical_json(value))[:16]


def chain(keyed: Keyed, head: str, digest: str) -> str:
    """The chain after one more message."""
    return keyed.hash("chain", head, digest)


class Told(msgspec.Struct, frozen=True):
    """A message as the store keeps it. `calls`: name, and a hash per argument."""

    role: str
    digest: str
    size: int
    calls: list[tuple[str, dict[str, str]]]
    by_system1: bool
    content: str


class Chained(msgspec.Struct, frozen=True):
    """`count` is the number of messages. `heads[n]` is the chain after n of them, for n from
    `known` on (before, it is not known and not needed); `told` are the messages from `known` on."""

    known: int
    count: int
    heads: dict[int, str]
    told: list[Told]
    opening: str
    has_assistant: bool


class Conversation(Protocol):
    """A conversation in pieces, each of them some messages' JSON."""

    @property
    def pieces(self) -> Pieces: ...
    def messages(self, at: int) -> Sequence[bytes]: ...


class _Known(msgspec.Struct, frozen=True):
    head: str
    opening: str
    has_assistant: bool
    messages: int


_NOTHING = _Known(START, "", False, 0)


class Lineage:
    """Digests messages, once each: what requests have in common is known by its bytes. It holds
    digests only, no text."""

    def __init__(self, keyed: Keyed) -> None:
        self._keyed = keyed
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def chained(self, conversation: Conversation, from_message: int | None = None) -> Chained:
        """The chain of a request's messages. `from_message`: read the messages from there on even
        where they are known; None reads the unknown ones only. Raises `InputError` for a piece
        that cannot be read."""
        pieces = conversation.pieces
        begin = len(pieces)
        at = self._of(pieces, begin)
        while begin and (at is None or (from_message is not None and at.messages > from_message)):
            begin -= 1
            at = self._of(pieces, begin)
        at = at or _NOTHING
        known, heads, told = at.messages, {at.messages: at.head}, list[Told]()
        for index in range(begin, len(pieces)):
            for raw in conversation.messages(index):
                one = self.told(raw)
                told.append(one)
                at = _Known(
                    self.after(at.head, one.digest),
                    at.opening or (one.digest if one.role == "user" else ""),
                    at.has_assistant or one.role == "assistant",
                    at.messages + 1,
                )
                heads[at.messages] = at.head
            self._known[pieces.until(index)] = at
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return Chained(known, at.messages, heads, told, at.opening, at.has_assistant)

    def _of(self, pieces: Pieces, count: int) -> _Known | None:
        """What is known of so many pieces."""
        if not count:
            return _NOTHING
        digest = pieces.until(count - 1)
        known = self._known.get(digest)
        if known is not None:
            self._known.move_to_end(digest)
        return known

    def after(self, head: str, digest: str) -> str:
        return chain(self._keyed, head, digest)

    def told(self, raw: bytes) -> Told:
        """Never raises: what cannot be read as a message is known by its bytes."""
        text = raw.decode("utf-8", "replace")
        try:
            message = message_from_chat(decode_strict(raw, "message"), "message")
        except InputError:
            return Told("unreadable", self._keyed.hash("raw", text), len(raw), [], False, text)
        return self._told(message, text, len(raw))

    def answered(self, message: Message, by_system1: bool, content: str) -> Told:
        """The answer to a request, as its next message."""
        one = self._told(message, content, len(content.encode()))
        return msgspec.structs.replace(one, by_system1=by_system1)

    def _told(self, message: Message, text: str, size: int) -> Told:
        meaning = [message.role, message.content, *(call.key for call in message.tool_calls)]
        if message.opaque:
            meaning.append(text)
        calls = [
            (call.name, {name: self._keyed.value(value) for name, value in call.arguments.items()})
            for call in message.tool_calls
        ]
        acted = any(is_own_call(call.id) for call in message.tool_calls)
        return Told(message.role, self._keyed.hash("message", *meaning), size, calls, acted, text)
