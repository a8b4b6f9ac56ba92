"""Events to streams of the messages dialect: one block after the other, each begun and stopped."""

from typing import Any

from reflexarc.wire.assembling import Sequencer, filled
from reflexarc.wire.dialects.messages.blocks_out import input_of
from reflexarc.wire.dialects.messages.faults import error_event
from reflexarc.wire.dialects.messages.replies import (
    call_block,
    redacted_block,
    sealed_calls,
    signature_out,
    text_block,
    usage_written,
)
from reflexarc.wire.dialects.messages.words import NAME, STOP_WORDS
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartEnded,
    PartGrew,
    PartNoted,
    PartSigned,
    ReplyPart,
    stop_of,
)
from reflexarc.wire.sse import comment, named_event
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking

PING = b'event: ping\ndata: {"type":"ping"}\n\n'
"""Says that a stream is alive before it says anything else."""

_STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


class MessagesStreamWriter:
    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._lost_before = len(losses.names)
        self._sequencer = Sequencer()
        self._done = False
        self._began = False
        self._own = False
        self._index = 0
        self._kinds: list[ReplyPart] = []
        self._part: ReplyPart | None = None
        self._started = False
        self._grown = False
        self._held: list[str] = []
        self._signed: tuple[str, str] | None = None

    def write(self, event: Event) -> bytes:
        if self._done:
            return b""
        events = self._sequencer.take(event)
        if len(events) == 1:
            return self._put(events[0])
        return b"".join([self._put(one) for one in events])

    def _put(self, event: Event) -> bytes:
        if isinstance(event, PartGrew):
            return self._grow(event.text)
        if isinstance(event, PartBegan):
            return self._begin(event.part)
        if isinstance(event, PartSigned):
            self._signed = (event.signature, event.origin)
            return b""
        if isinstance(event, PartNoted):
            return self._note(event)
        if isinstance(event, PartEnded):
            return self._end_part()
        if isinstance(event, Began):
            return self._start(event)
        return self._end(event) if isinstance(event, Ended) else self._fail(event)

    def _start(self, event: Began) -> bytes:
        self._began = True
        self._own = event.origin == NAME
        message: dict[str, Any] = {
            "id": event.id,
            "type": "message",
            "role": "assistant",
            "model": event.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_written(event.usage, event.service_tier),
        }
        return _frame("message_start", {"message": message})

    def _begin(self, part: ReplyPart) -> bytes:
        self._part, self._started, self._grown = part, False, False
        self._held, self._signed = [], None
        if isinstance(part, Call):
            return self._begin_call(part)
        if isinstance(part, Text | Refusal) and part.text:
            return self._grow(part.text)
        if isinstance(part, Thinking) and not part.redacted:
            block: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
            if part.origin == NAME:
                block |= part.more
            return self._block_begins(block) + self._grow(part.text)
        if isinstance(part, Foreign):
            if self._own:
                return self._block_begins(part.value)
            self._losses.lose(f"content.{part.what}")
        elif isinstance(part, Media):
            self._losses.lose(f"content.{part.kind}")
        return b""

    def _begin_call(self, part: Call) -> bytes:
        before = b""
        if part.signature is not None:
            before = self._whole(sealed_calls({part.id: (part.signature, part.origin)}))
        begun = self._block_begins(call_block(part, {}, self._losses, self._own))
        return before + begun + (self._grow(part.arguments) if part.arguments else b"")

    def _grow(self, text: str) -> bytes:
        part = self._part
        if not text or part is None:
            return b""
        if isinstance(part, Text | Refusal):
            begun = b""
            # A block of text without any is refused when it comes back: none begins before it.
            if not self._started:
                begun = self._block_begins(text_block(part, "", self._losses, self._own))
            return begun + self._delta(b"text_delta", b"text", text)
        if isinstance(part, Thinking):
            return self._delta(b"thinking_delta", b"thinking", text) if self._started else b""
        if not isinstance(part, Call):
            return b""
        if part.kind != "function":
            self._held.append(text)
            return b""
        self._grown = True
        return self._delta(b"input_json_delta", b"partial_json", text)

    def _note(self, event: PartNoted) -> bytes:
        if not self._own:
            self._losses.lose(f"content.{event.name}")
            return b""
        if event.name != "citations" or not isinstance(self._part, Text):
            return b""
        begun = b""
        if not self._started:
            begun = self._block_begins(text_block(self._part, "", self._losses, self._own))
        delta = {"type": "citations_delta", "citation": event.value}
        return begun + _frame("content_block_delta", {"index": self._index, "delta": delta})

    def _end_part(self) -> bytes:
        part, self._part = self._part, None
        if part is None:
            return b""
        self._kinds.append(part)
        if isinstance(part, Thinking):
            return self._end_thinking(part)
        if isinstance(part, Call):
            return self._end_call(part)
        return self._block_ends() if self._started else b""

    def _end_thinking(self, part: Thinking) -> bytes:
        signature, origin = self._signed or (part.signature, part.origin)
        if part.redacted:
            return self._whole([redacted_block(_resigned(part, signature, origin))])
        out = b""
        told = signature_out(part, signature, origin)
        if told is not None:
            out = self._delta(b"signature_delta", b"signature", told)
        return out + self._block_ends()

    def _end_call(self, part: Call) -> bytes:
        out = b""
        if self._held:
            whole = filled(part, "".join(self._held))
            if isinstance(whole, Call):
                text = encode_json(input_of(whole, self._losses)).decode()
                out = self._delta(b"input_json_delta", b"partial_json", text)
        elif not self._grown:
            out = self._delta(b"input_json_delta", b"partial_json", "{}")
        out += self._block_ends()
        if self._signed is not None:
            # Told too late to stand before the call; what it is for is told by the call's id.
            out += self._whole(sealed_calls({part.id: self._signed}))
        return out

    def _end(self, event: Ended) -> bytes:
        self._done = True
        out = b"" if self._began else self._start(Began("", ""))
        delta = {
            "stop_reason": STOP_WORDS[stop_of(event.stop, self._kinds)],
            "stop_sequence": event.stop_sequence,
        }
        usage = usage_written(event.usage, event.service_tier)
        if event.usage is None:
            usage.pop("input_tokens")
        out += _frame("message_delta", {"delta": delta, "usage": usage})
        return out + self._warning() + _STOP

    def _fail(self, event: Failed) -> bytes:
        self._done = True
        return self._warning() + named_event(b"error", encode_json(error_event(event.fault)))

    def _warning(self) -> bytes:
        if len(self._losses.names) == self._lost_before:
            return b""
        return comment(f"x-reflexarc-warning: {self._losses.text()}")

    def _whole(self, blocks: list[dict[str, Any]]) -> bytes:
        out = b""
        for block in blocks:
            signature = block.get("signature")
            if block["type"] == "thinking" and isinstance(signature, str):
                out += self._block_begins({**block, "signature": ""})
                out += self._delta(b"signature_delta", b"signature", signature)
            else:
                out += self._block_begins(block)
            out += self._block_ends()
        return out

    def _block_begins(self, block: dict[str, Any]) -> bytes:
        self._started = True
        return _frame("content_block_start", {"index": self._index, "content_block": block})

    def _block_ends(self) -> bytes:
        index = self._index
        self._index += 1
        self._started = False
        return _frame("content_block_stop", {"index": index})

    def _delta(self, kind: bytes, member: bytes, text: str) -> bytes:
        return (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,'
            b'"delta":{"type":"%b","%b":%b}}\n\n' % (self._index, kind, member, encode_json(text))
        )


def _resigned(part: Thinking, signature: str | None, origin: str) -> Thinking:
    return Thinking("", signature, origin, redacted=True, id=part.id, more=part.more)


def _frame(name: str, members: dict[str, Any]) -> bytes:
    return named_event(name.encode(), encode_json({"type": name, **members}))
