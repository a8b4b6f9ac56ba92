"""A request to a model as System 1 reads it, whatever its dialect: what it asks for, the tools it
offers, and its conversation, piece by piece, unread until it is known to be new."""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec
import xxhash

from reflexarc.gateway.admission import MAX_FIELD_BYTES, Admission, admit
from reflexarc.gateway.admission_ask import admit_ask
from reflexarc.gateway.conversations import Read, TooLongError
from reflexarc.steps import Message
from reflexarc.steps.errors import MalformedError
from reflexarc.wire.as_steps import messages_of
from reflexarc.wire.chat import message_from_chat
from reflexarc.wire.dialect import Dialect, Where
from reflexarc.wire.dialects import dialect, load_dialects
from reflexarc.wire.growing import Bodies, Grown
from reflexarc.wire.json import decode_strict, encode_json
from reflexarc.wire.offered import MAX_TOOLS_BYTES, ToolReader, Tools, tools_given
from reflexarc.wire.sent import BETWEEN, Listed, Pieces, Sent
from reflexarc.wire.turns import Ask, ToolOffer, Turn, joined

_MAX_HEADS = 128
_MAX_INSTRUCTIONS_BYTES = 1024 * 1024
_LONGEST = {
    "tools": MAX_TOOLS_BYTES,
    **dict.fromkeys(
        ("instructions", "system", "systemInstruction", "system_instruction"),
        _MAX_INSTRUCTIONS_BYTES,
    ),
}
"""Members that may be longer than others. What is longer yet is for System 2 alone."""


class RequestRead(msgspec.Struct, frozen=True):
    """`pieces` make the conversation, each as it came; `read` makes messages of one. `ask` is the
    request without its conversation, None for chat. Without `tools` there is nothing to decide
    on."""

    admission: Admission
    tools: Tools | None = None
    pieces: Pieces | None = None
    read: Read | None = None
    ask: Ask | None = None


class Requests:
    """Reads requests. What they say beside their conversation is the same from turn to turn, and is
    read once."""

    def __init__(self, tools: ToolReader, max_depth: int) -> None:
        load_dialects()
        self._tools = tools
        self._max_depth = max_depth
        self._bodies = Bodies()
        # All tenants share what is read once: nobody may find two texts of one digest.
        self._seed = secrets.randbits(64)
        self._heads: OrderedDict[bytes, _Head] = OrderedDict()
        self._offered: OrderedDict[bytes, Tools] = OrderedDict()

    def read(self, tenant: bytes, name: str, where: Where, body: bytes) -> RequestRead:
        """Raises `MalformedError`, `TooLongError`, or `RequestError` with the path of the fault."""
        spoken = dialect(name)
        grown = self._bodies.read(tenant + name.encode(), spoken.conversation, body)
        if grown.crowded:
            raise TooLongError
        fields = grown.members
        if name == "chat":
            return self._chat(fields, grown)
        beside = {key: raw for key, raw in fields.items() if key != spoken.conversation}
        head = self._head(spoken, where, beside)
        if head.tools is None:
            return RequestRead(head.admission)
        first = encode_json(head.turns) if head.turns else b""

        def read(piece: bytes, at: int) -> list[Message]:
            if head.turns and at == 0:
                return [message for turn in head.turns for message in messages_of(turn)]
            return self._messages(spoken, piece, f"{spoken.conversation}[{at}]")

        if grown.listed:
            pieces: Pieces = Sent(grown, name, first)
        else:
            whole = [bytes(fields[spoken.conversation])] if spoken.conversation in fields else []
            pieces = Listed([first, *whole] if first else whole, name.encode())
        return RequestRead(head.admission, head.tools, pieces, read, head.ask)

    def _chat(self, fields: dict[str, msgspec.Raw], grown: Grown) -> RequestRead:
        admission = admit(fields, self._max_depth)
        if admission.refusal is not None:
            return RequestRead(admission)
        tools = self._tools.read(fields["tools"])
        if not grown.listed:
            raise MalformedError("messages is not a JSON list")
        return RequestRead(admission, tools, Sent(grown, "chat"), self.chat)

    def chat(self, piece: bytes, at: int) -> list[Message]:
        """A chat message."""
        path = f"messages[{at}]"
        return [message_from_chat(decode_strict(piece, path, self._max_depth), path)]

    def _messages(self, spoken: Dialect, piece: bytes, path: str) -> list[Message]:
        turns: list[Turn] = []
        for raw in piece.split(BETWEEN):
            turns.extend(spoken.read_message(decode_strict(raw, path, self._max_depth), path))
        return [message for turn in joined(turns) for message in messages_of(turn)]

    def _head(self, spoken: Dialect, where: Where, fields: dict[str, msgspec.Raw]) -> "_Head":
        for name, raw in fields.items():
            if len(memoryview(raw)) > _LONGEST.get(name, MAX_FIELD_BYTES):
                return _Head(Admission("too_long"))
        digest = self._digest(spoken.name, where, fields)
        known = self._heads.get(digest)
        if known is not None:
            self._heads.move_to_end(digest)
            return known
        values = {
            name: decode_strict(bytes(raw), name, self._max_depth) for name, raw in fields.items()
        }
        read = spoken.read_head(values, where)
        ask = Ask(spoken.name, read.settings, (), read.tools)
        admission = admit_ask(ask)
        tools = None
        if admission.refusal is None:
            tools = self._tools_of(spoken, bytes(fields["tools"]), read.tools)
        if tools is not None and tools.refusal is not None:
            admission = Admission(tools.refusal)
        head = _Head(admission, tools, read.turns, ask)
        self._heads[digest] = head
        if len(self._heads) > _MAX_HEADS:
            self._heads.popitem(last=False)
        return head

    def _digest(self, name: str, where: Where, fields: Mapping[str, msgspec.Raw]) -> bytes:
        """Every part by its length too: a name may hold any character."""
        parts = [name.encode(), where.model.encode("utf-8", "surrogatepass"), b"%d" % where.stream]
        for member, raw in fields.items():
            parts += [member.encode("utf-8", "surrogatepass"), bytes(raw)]
        hasher = xxhash.xxh3_128(seed=self._seed)
        for part in parts:
            hasher.update(b"%d " % len(part))
            hasher.update(part)
        return hasher.digest()

    def _tools_of(self, spoken: Dialect, raw: bytes, offers: tuple[ToolOffer, ...]) -> Tools:
        """Their schemas are made ready once, however much else changes beside them."""
        digest = xxhash.xxh3_128_digest(spoken.name.encode() + b" " + raw, seed=self._seed)
        known = self._offered.get(digest)
        if known is not None:
            self._offered.move_to_end(digest)
            return known
        tools = _tools(offers)
        self._offered[digest] = tools
        if len(self._offered) > _MAX_HEADS:
            self._offered.popitem(last=False)
        return tools


class _Head(msgspec.Struct, frozen=True):
    admission: Admission
    tools: Tools | None = None
    turns: tuple[Turn, ...] = ()
    ask: Ask | None = None


def _tools(offers: tuple[ToolOffer, ...]) -> Tools:
    """As a chat request would offer them: what was learned of a tool holds in every dialect."""
    given: list[dict[str, Any]] = []
    for offer in offers:
        if offer.kind != "function":
            return Tools((), f"tool_type:{offer.name if offer.kind == 'hosted' else offer.kind}", 0)
        function: dict[str, Any] = {
            "name": offer.name,
            "description": offer.description,
            "parameters": offer.parameters,
            "strict": offer.strict,
        }
        kept = {name: offer.more[name] for name in _DECLARED if name in offer.more}
        given.append({**kept, "type": "function", "function": function})
    return tools_given(given)


_DECLARED = ("x-reflexarc-effect", "annotations")
