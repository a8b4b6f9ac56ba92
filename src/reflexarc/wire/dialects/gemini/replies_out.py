"""Answers written as `generateContent` gives them: whole, and as a stream of chunks.

A stream is data and nothing else: Google's clients take a comment or an `event:` line for a broken
answer. What is lost on the way is named in the last chunk, under `x-reflexarc-warning`, which they
pass over.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from reflexarc.wire.assembling import Sequencer
from reflexarc.wire.dialects.gemini.contents_out import put_signing
from reflexarc.wire.dialects.gemini.faults import write_fault
from reflexarc.wire.dialects.gemini.parts_out import args_of, beside, function_call, media
from reflexarc.wire.dialects.gemini.shapes import NAME
from reflexarc.wire.dialects.gemini.signatures import sealed_signature, signature_of
from reflexarc.wire.dialects.gemini.words import BESIDE_CANDIDATES, BESIDE_CONTENT, REASONS
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import HEADER, Losses
from reflexarc.wire.replies import (
    Began,
    Ended,
    Event,
    Failed,
    PartBegan,
    PartGrew,
    PartNoted,
    PartSigned,
    Reply,
    ReplyPart,
)
from reflexarc.wire.sealed import Sealed
from reflexarc.wire.sse import data_event
from reflexarc.wire.turns import Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import usage_to_gemini


def write_reply(reply: Reply, losses: Losses) -> dict[str, Any]:
    own = reply.origin == NAME
    parts: list[dict[str, Any]] = []
    aside: list[Foreign] = []
    for part in reply.parts:
        if own and isinstance(part, Foreign) and _is_aside(part):
            aside.append(part)
        else:
            _put(part, parts, own, losses)
    if not own:
        losses.lose_all(reply.more)
    _lose_stop(reply.stop_sequence, losses)
    content = {"parts": parts, "role": "model"}
    candidate = {"content": content, "finishReason": REASONS[reply.stop], "index": 0}
    body: dict[str, Any] = {"candidates": [candidate]}
    for part in aside:
        (body if part.what in BESIDE_CANDIDATES else candidate).update(part.value)
    body.update(_head(Began(reply.id, reply.model, reply.created_s)))
    if reply.usage is not None:
        body["usageMetadata"] = usage_to_gemini(reply.usage)
    if own and "promptFeedback" in body and not parts and reply.stop == "filter":
        del body["candidates"]
    return body


def _is_aside(part: Foreign) -> bool:
    return part.what in BESIDE_CONTENT or part.what in BESIDE_CANDIDATES


def _lose_stop(sequence: str | None, losses: Losses) -> None:
    if sequence is not None:
        losses.lose("stop_sequence")


_YEAR_10000_S = 253_402_300_800


def _head(began: Began) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if began.model:
        body["modelVersion"] = began.model
    if began.id:
        body["responseId"] = began.id
    if 0 < began.created_s < _YEAR_10000_S:  # some providers tell milliseconds
        made = datetime.fromtimestamp(began.created_s, UTC)
        body["createTime"] = made.strftime("%Y-%m-%dT%H:%M:%SZ")
    return body


def _put(part: ReplyPart, parts: list[dict[str, Any]], own: bool, losses: Losses) -> None:
    """A whole part. `own`: it came in this dialect."""
    if isinstance(part, Text):
        _name_more(part.more, own, losses)
        parts.append({"text": part.text, **(beside(part.more) if own else {})})
    elif isinstance(part, Refusal):
        losses.lose("content.refusal")
        parts.append({"text": part.text})
    elif isinstance(part, Thinking):
        _put_thinking(part, parts)
    elif isinstance(part, Call):
        signature = part.signature
        if signature is not None and part.origin != NAME:
            signature = sealed_signature(Sealed(part.origin, signature))
        if not own:
            losses.lose_all(part.more, "tool_calls.")
        parts.append(function_call(part, part.id, args_of(part, losses), signature, own))
    elif isinstance(part, Media):
        made = media(part, own, losses)
        if made is not None:
            parts.append(made)
    elif own:
        parts.append(part.value)
    else:
        losses.lose(f"content.{part.what}")


def _name_more(more: dict[str, Any], own: bool, losses: Losses) -> None:
    if not own:
        losses.lose_all(more, "content.")


def _put_thinking(part: Thinking, parts: list[dict[str, Any]], grown: int = 0) -> None:
    if part.redacted and part.origin == NAME:
        put_signing(part, parts)
        return
    made: dict[str, Any] = {"text": part.text, "thought": True}
    signature = signature_of(part, grown)
    if signature is not None:
        made["thoughtSignature"] = signature
    parts.append({**made, **(beside(part.more) if part.origin == NAME else {})})


# A chunk of text, as `_chunk` writes it: all but the text is the same in each.
_BEFORE = b'data: {"candidates":[{"content":{"parts":[{"text":'
_THOUGHT = b',"thought":true'


def _after(head: dict[str, Any]) -> bytes:
    more = b"," + encode_json(head)[1:-1] if head else b""
    return b'}],"role":"model"},"index":0}]' + more + b"}\n\n"


class GeminiStreamWriter:
    """Text goes on as it comes; a call goes when it is whole."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._before = len(losses.names)
        self._sequencer = Sequencer()
        self._head: dict[str, Any] = {}
        self._after = _after(self._head)
        self._own = False
        self._part: ReplyPart | None = None
        self._texts: list[str] = []
        self._grown = 0
        self._aside: list[Foreign] = []
        self._over = False

    def write(self, event: Event) -> bytes:
        if self._over:
            return b""
        events = self._sequencer.take(event)
        if len(events) == 1:
            return self._one(events[0])
        return b"".join([self._one(one) for one in events])

    def _one(self, event: Event) -> bytes:
        if isinstance(event, PartGrew):
            if isinstance(self._part, Text | Refusal):
                return _BEFORE + encode_json(event.text) + self._after
            if isinstance(self._part, Thinking):
                self._grown += len(event.text)
                return _BEFORE + encode_json(event.text) + _THOUGHT + self._after
            self._texts.append(event.text)
            return b""
        if isinstance(event, PartBegan):
            return self._begin(event.part)
        if isinstance(event, PartSigned):
            return self._sign(event)
        if isinstance(event, PartNoted):
            _name_more({event.name: event.value}, self._own, self._losses)
            return b""
        if isinstance(event, Began):
            self._head, self._own = _head(event), event.origin == NAME
            self._after = _after(self._head)
            return b""
        if isinstance(event, Ended):
            return self._end(event)
        if isinstance(event, Failed):
            self._over = True
            _, body = write_fault(event.fault, "")
            return data_event(encode_json(body))
        return self._end_part()

    def _begin(self, part: ReplyPart) -> bytes:
        """What is all there goes out; what may grow is begun."""
        self._part, self._texts, self._grown = part, [], 0
        if isinstance(part, Foreign) and self._own and _is_aside(part):
            self._aside.append(part)
            return b""
        if isinstance(part, Refusal):
            self._losses.lose("content.refusal")
        if isinstance(part, Call):
            return b""
        if isinstance(part, Text):
            _name_more(part.more, self._own, self._losses)
            more = beside(part.more) if self._own else {}
            return self._chunk([{"text": part.text, **more}]) if part.text or more else b""
        if isinstance(part, Refusal):
            return self._chunk([{"text": part.text}]) if part.text else b""
        if isinstance(part, Thinking) and not part.text and part.signature is None:
            return b""
        parts: list[dict[str, Any]] = []
        _put(part, parts, self._own, self._losses)
        return self._chunk(parts)

    def _sign(self, event: PartSigned) -> bytes:
        part = self._part
        if isinstance(part, Call):
            self._part = msgspec.structs.replace(
                part, signature=event.signature, origin=event.origin
            )
        elif isinstance(part, Thinking):
            parts: list[dict[str, Any]] = []
            signed = msgspec.structs.replace(
                part, text="", signature=event.signature, origin=event.origin
            )
            _put_thinking(signed, parts, self._grown)
            self._part = signed
            return self._chunk(parts)
        return b""

    def _end_part(self) -> bytes:
        part, self._part = self._part, None
        if isinstance(part, Thinking) and part.signature is None and self._grown:
            # nobody signed it: if it is another's, that comes back instead
            marked: list[dict[str, Any]] = []
            _put_thinking(msgspec.structs.replace(part, text=""), marked, self._grown)
            return self._chunk(marked) if "thoughtSignature" in marked[0] else b""
        if not isinstance(part, Call):
            return b""
        text = part.arguments + "".join(self._texts)
        whole = msgspec.structs.replace(part, arguments=text)
        parts: list[dict[str, Any]] = []
        _put(whole, parts, self._own, self._losses)
        return self._chunk(parts)

    def _chunk(self, parts: list[dict[str, Any]]) -> bytes:
        if not parts:
            return b""
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
        return self._bytes({"candidates": [candidate]})

    def _bytes(self, body: dict[str, Any]) -> bytes:
        return data_event(encode_json({**body, **self._head}))

    def _end(self, ended: Ended) -> bytes:
        self._over = True
        _lose_stop(ended.stop_sequence, self._losses)
        # Clients' own histories leave out an answer whose last chunk has no part.
        content = {"parts": [{"text": ""}], "role": "model"}
        candidate: dict[str, Any] = {
            "content": content,
            "finishReason": REASONS[ended.stop],
            "index": 0,
        }
        body: dict[str, Any] = {"candidates": [candidate]}
        for part in self._aside:
            (body if part.what in BESIDE_CANDIDATES else candidate).update(part.value)
        if ended.usage is not None:
            body["usageMetadata"] = usage_to_gemini(ended.usage)
        if len(self._losses.names) > self._before:
            body[HEADER.decode()] = self._losses.text()
        return self._bytes(body)
