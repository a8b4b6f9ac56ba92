"""Answers written as chat completions, whole and streamed."""

from typing import Any

from reflexarc.wire.chat_answer import FINGERPRINT
from reflexarc.wire.dialects.chat.thoughts import (
    ORIGIN,
    details_of,
    sealed_calls,
    sealed_item,
)
from reflexarc.wire.dialects.chat.words import reason_of, thinking_member
from reflexarc.wire.dialects.openai_faults import write_fault
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
    Reply,
    ReplyPart,
)
from reflexarc.wire.sse import DONE, comment, data_event
from reflexarc.wire.turns import Ask, Call, Foreign, Media, Refusal, Text, Thinking
from reflexarc.wire.usage import usage_to_chat


def write_reply(reply: Reply, ask: Ask, losses: Losses) -> dict[str, Any]:
    """A `chat.completion`."""
    texts = [part.text for part in reply.parts if isinstance(part, Text)]
    refusals = [part.text for part in reply.parts if isinstance(part, Refusal)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(texts) if texts else None,
        "refusal": "".join(refusals) if refusals else None,
    }
    for part in reply.parts:
        lose_what_chat_lacks(part, losses)
    thoughts = [part for part in reply.parts if isinstance(part, Thinking)]
    shown = "".join(part.text for part in thoughts)
    if shown:
        message[thinking_member(ask)] = shown
    details = [item for part in thoughts for item in thought_items(part)]
    details.extend(call_items(reply.calls))
    if details:
        message["reasoning_details"] = details
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    if reply.origin == ORIGIN:
        message.update(reply.more)
    else:
        losses.lose_all(reply.more)
    body: dict[str, Any] = {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created_s,
        "model": reply.model or ask.settings.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": reason_of(reply.stop, losses, refusal=bool(refusals)),
            }
        ],
    }
    if reply.usage is not None:
        body["usage"] = usage_to_chat(reply.usage)
    if reply.service_tier is not None:
        body["service_tier"] = reply.service_tier
    return body


def lose_what_chat_lacks(part: ReplyPart, losses: Losses) -> None:
    if isinstance(part, Foreign):
        losses.lose(f"content.{part.what}")
    elif isinstance(part, Media):
        losses.lose(f"content.{part.kind}")
    elif isinstance(part, Text):
        losses.lose_all(part.more, "content.")


def thought_items(part: Thinking) -> list[Any]:
    """What of thinking must come back with the next request, beside its text."""
    if part.origin != ORIGIN:
        return [sealed_item(part)] if part.signature is not None or part.redacted else []
    return details_of(part.signature) if part.signature is not None else []


def call_items(calls: "tuple[Call, ...] | list[Call]") -> list[Any]:
    """Signatures of calls that chat has no field for."""
    signed: dict[str, dict[str, str]] = {}
    for call in calls:
        if call.signature is not None and call.origin != "gemini":
            signed.setdefault(call.origin, {})[call.id] = call.signature
    return [sealed_calls(origin, signatures) for origin, signatures in signed.items()]


def _call(call: Call) -> dict[str, Any]:
    if call.kind == "custom":
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    written: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    if call.signature is not None and call.origin == "gemini":
        written["extra_content"] = {"google": {"thought_signature": call.signature}}
    return written


class _Open:
    """A part that is being streamed: a call's index among calls, and whether any of it came."""

    def __init__(self, part: ReplyPart, index: int) -> None:
        self.part = part
        self.index = index
        self.grown = False
        self.ended = False
        self.text: list[str] = []


class ChatStreamWriter:
    """Chunks of one completion. The order of calls is that in which they begin."""

    def __init__(self, ask: Ask, losses: Losses) -> None:
        self._ask = ask
        self._losses = losses
        self._lost_before = len(losses.names)
        self._head: dict[str, Any] = {}
        self._parts: dict[int, _Open] = {}
        self._thinking = thinking_member(ask)
        self._calls = 0
        self._details = 0
        self._before = b""
        self._after = b""

    def write(self, event: Event) -> bytes:
        if isinstance(event, PartGrew):
            return self._grow(event)
        if isinstance(event, PartBegan):
            return self._begin_part(event)
        if isinstance(event, PartSigned):
            return self._sign(event)
        if isinstance(event, PartNoted):
            self._losses.lose(f"content.{event.name}")
            return b""
        if isinstance(event, PartEnded):
            return self._end_part(event.at)
        if isinstance(event, Began):
            return self._begin(event)
        if isinstance(event, Ended):
            return self._end(event)
        return self._fail(event)

    def _begin(self, event: Began) -> bytes:
        self._head = {
            "id": event.id,
            "object": "chat.completion.chunk",
            "created": event.created_s,
            "model": event.model or self._ask.settings.model,
            "system_fingerprint": FINGERPRINT,
        }
        if event.service_tier is not None:
            self._head["service_tier"] = event.service_tier
        # Everything but the delta is the same in each chunk: it is written once.
        head = encode_json(self._head)
        usage = b',"usage":null' if self._ask.settings.include_usage else b""
        self._before = b"data: " + head[:-1] + b',"choices":[{"index":0,"delta":'
        self._after = b',"logprobs":null,"finish_reason":null}]' + usage + b"}\n\n"
        return self._chunk({"role": "assistant", "content": ""})

    def _chunk(self, delta: dict[str, Any]) -> bytes:
        return self._before + encode_json(delta) + self._after

    def _begin_part(self, event: PartBegan) -> bytes:
        part = event.part
        opened = _Open(part, self._calls)
        self._parts[event.at] = opened
        lose_what_chat_lacks(part, self._losses)
        if isinstance(part, Call):
            self._calls += 1
            entry = {"index": opened.index, **_call(part)}
            out = self._chunk({"tool_calls": [entry]})
            opened.grown = bool(part.arguments)
            return out
        if isinstance(part, Thinking) and part.redacted:
            return self._detail(thought_items(part))
        text = part.text if isinstance(part, Text | Thinking | Refusal) else ""
        return self._grow(PartGrew(event.at, text)) if text else b""

    def _grow(self, event: PartGrew) -> bytes:
        opened = self._parts[event.at]
        part = opened.part
        opened.grown = True
        if isinstance(part, Text):
            return self._chunk({"content": event.text})
        if isinstance(part, Call):
            key, name = ("custom", "input") if part.kind == "custom" else ("function", "arguments")
            # The type each time: Cerebras' client makes no object of a delta without it.
            entry = {"index": opened.index, "type": part.kind, key: {name: event.text}}
            return self._chunk({"tool_calls": [entry]})
        if isinstance(part, Thinking):
            opened.text.append(event.text)
            return self._chunk({self._thinking: event.text})
        return self._chunk({"refusal": event.text}) if isinstance(part, Refusal) else b""

    def _sign(self, event: PartSigned) -> bytes:
        opened = self._parts[event.at]
        part = opened.part
        if isinstance(part, Call):
            signed = Call(part.id, part.name, "", signature=event.signature, origin=event.origin)
            if event.origin == "gemini":
                google = {"thought_signature": event.signature}
                entry: dict[str, Any] = {"index": opened.index, "type": part.kind}
                # SDKs that gather a stream want a function in each delta of a call
                entry.update(function={"arguments": ""}, extra_content={"google": google})
                return self._chunk({"tool_calls": [entry]})
            return self._detail(call_items([signed]))
        if isinstance(part, Thinking):
            whole = Thinking(
                "".join(opened.text), event.signature, event.origin, id=part.id, more=part.more
            )
            return self._detail(thought_items(whole))
        return b""

    def _detail(self, items: list[Any]) -> bytes:
        """More of `reasoning_details`. SDKs that gather a stream join lists by `index`."""
        if not items:
            return b""
        numbered = [{**item, "index": at} for at, item in enumerate(items, self._details)]
        self._details += len(items)
        return self._chunk({"reasoning_details": numbered})

    def _end_part(self, at: int) -> bytes:
        opened = self._parts[at]
        opened.ended = True
        part = opened.part
        if isinstance(part, Call) and part.kind == "function" and not opened.grown:
            return self._grow(PartGrew(at, "{}"))
        return b""

    def _end(self, event: Ended) -> bytes:
        out = [self._end_part(at) for at, opened in self._parts.items() if not opened.ended]
        refusal = any(isinstance(opened.part, Refusal) for opened in self._parts.values())
        reason = reason_of(event.stop, self._losses, refusal=refusal)
        if reason == "stop" and self._calls:
            reason = "tool_calls"
        asked = self._ask.settings.include_usage
        last: dict[str, Any] = {
            **self._head,
            "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": reason}],
        }
        if asked:
            last["usage"] = None
        out.append(data_event(encode_json(last)))
        if asked and event.usage is not None:
            usage: dict[str, Any] = {
                **self._head,
                "choices": [],
                "usage": usage_to_chat(event.usage),
            }
            out.append(data_event(encode_json(usage)))
        if len(self._losses.names) > self._lost_before:
            out.append(comment(f"x-reflexarc-warning: {self._losses.text()}"))
        out.append(DONE)
        return b"".join(out)

    def _fail(self, event: Failed) -> bytes:
        _, body = write_fault(event.fault)
        return data_event(encode_json(body))
