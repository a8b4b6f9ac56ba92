"""Streams, written: the events of an answer in the API's order, numbered.

An item is closed when the next one begins or the answer ends: only then is it known whether it came
to its own end.
"""

from typing import Any, cast

import msgspec

from reflexarc.wire.assembling import Sequencer
from reflexarc.wire.dialects.responses.frame import Frame, error_of, status_of
from reflexarc.wire.dialects.responses.items_in import NAME, RAW, is_marked
from reflexarc.wire.dialects.responses.items_made import ItemMaker
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
)
from reflexarc.wire.sse import comment, named_event
from reflexarc.wire.turns import Ask, Call, Refusal, Text, Thinking


class ResponsesStreamWriter:
    def __init__(self, ask: Ask, losses: Losses) -> None:
        self._ask = ask
        self._losses = losses
        self._lost_before = len(losses.names)
        self._sequencer = Sequencer()
        self._frame: Frame | None = None
        self._maker: ItemMaker | None = None
        self._began = Began("", "")
        self._output: list[dict[str, Any]] = []
        self._parts: list[ReplyPart] = []
        self._open: dict[str, Any] | None = None
        self._part: ReplyPart | None = None
        self._shown = False
        self._pieces: list[str] = []
        self._blank = True
        self._before = b""
        self._place = b""
        self._noted: dict[str, list[Any]] = {}
        self._signed_late: Call | None = None
        self._number = 0
        self._over = False
        self._out: list[bytes] = []

    def write(self, event: Event) -> bytes:
        if self._over:
            return b""
        self._out = []
        for each in self._sequencer.take(event):
            self._write(each)
        return b"".join(self._out)

    def _write(self, event: Event) -> None:
        if isinstance(event, PartGrew):
            self._grow(event.text)
        elif isinstance(event, PartBegan):
            self._begin_part(event.part)
        elif isinstance(event, PartEnded):
            self._end_part()
        elif isinstance(event, PartSigned):
            self._sign(event.signature, event.origin)
        elif isinstance(event, PartNoted):
            self._note(event.name, event.value)
        elif isinstance(event, Began):
            self._begin(event)
        elif isinstance(event, Ended):
            self._end(event)
        else:
            self._fail(event)

    # The answer.

    def _begin(self, event: Began) -> Frame:
        if self._frame is not None:
            return self._frame
        self._began = event
        frame = Frame(self._ask, event.id, event.model, event.created_s, event.origin)
        self._frame, self._maker = frame, ItemMaker(frame, self._losses)
        response = frame.response("in_progress", [], service_tier=event.service_tier)
        self._send("response.created", response=response)
        self._send("response.in_progress", response=response)
        return frame

    def _end(self, event: Ended) -> None:
        frame = self._begin(self._began)
        status, reason = status_of(event.stop, self._parts, self._losses)
        self._end_part()
        self._close("incomplete" if status == "incomplete" else "completed")
        response = frame.response(
            status,
            self._output,
            reason=reason,
            usage=event.usage,
            service_tier=event.service_tier or self._began.service_tier,
        )
        self._last(f"response.{status}", response)

    def _fail(self, event: Failed) -> None:
        frame = self._begin(self._began)
        output = self._output
        if self._open is not None:
            output = [*output, self._so_far(self._open)]
        error = error_of(event.fault)
        self._last("response.failed", frame.response("failed", output, error=error))

    def _so_far(self, item: dict[str, Any]) -> dict[str, Any]:
        """An item as far as it has come."""
        part, text = self._part, "".join(self._pieces)
        if isinstance(part, Thinking):
            whole = msgspec.structs.replace(part, text=text)
            return self._made().thinking(whole, len(self._output))
        item = {**item, "status": "incomplete"}
        if isinstance(part, Call):
            item["input" if part.kind == "custom" else "arguments"] = text
        elif isinstance(part, Text | Refusal) and self._shown:
            content = self._made().content(msgspec.structs.replace(part, text=text))
            item["content"] = [*item["content"], content]
        return item

    def _last(self, kind: str, response: dict[str, Any]) -> None:
        if len(self._losses.names) > self._lost_before:
            self._out.append(comment(f"x-reflexarc-warning: {self._losses.text()}"))
        self._send(kind, response=response)
        self._over = True

    def _send(self, kind: str, **members: Any) -> None:
        value = {"type": kind, "sequence_number": self._number, **members}
        self._number += 1
        self._out.append(named_event(kind.encode(), encode_json(value)))

    def _delta(self, kind: str, place: dict[str, Any], text: str, after: bytes = b"") -> None:
        """More of a part. What is the same in every delta of a part is written once."""
        if not self._before:
            name = kind.encode()
            self._before = b'event: %b\ndata: {"type":"%b","sequence_number":' % (name, name)
            self._place = encode_json({**self._about(), **place})[1:-1]
        self._out.append(
            b'%b%d,%b,"delta":%b%b}\n\n'
            % (self._before, self._number, self._place, encode_json(text), after)
        )
        self._number += 1

    def _about(self) -> dict[str, Any]:
        """What says which item an event is about."""
        item = self._open or {}
        return {"item_id": item.get("id", ""), "output_index": len(self._output)}

    def _made(self) -> ItemMaker:
        self._begin(self._began)
        return cast(ItemMaker, self._maker)

    # Items.

    def _add(self, item: dict[str, Any]) -> None:
        self._open = item
        self._send("response.output_item.added", output_index=len(self._output), item=item)

    def _close(self, status: str) -> None:
        item = self._open
        if item is None:
            return
        if "status" in item:
            item["status"] = status
        self._send("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._open = None
        late, self._signed_late = self._signed_late, None
        if late is not None:
            self._whole(self._made().signatures([late], len(self._output)))

    def _whole(self, item: dict[str, Any]) -> None:
        """An item that comes all at once."""
        self._close("completed")
        self._add(item)
        index, self._open = len(self._output), None
        self._send("response.output_item.done", output_index=index, item=item)
        self._output.append(item)

    # Parts.

    def _begin_part(self, part: ReplyPart) -> None:
        maker = self._made()
        self._end_part()
        self._part, self._shown, self._pieces, self._noted = part, False, [], {}
        self._blank, self._before = True, b""
        self._parts.append(part)
        if isinstance(part, Text | Refusal):
            if part.text or not maker.is_nothing(part):
                self._show_text(part)
        elif isinstance(part, Thinking):
            self._show_thinking(part)
        elif isinstance(part, Call):
            self._show_call(part)
        else:
            item = maker.other(part, len(self._output) + (self._open is not None))
            if item is not None:
                self._whole(item)

    def _show_text(self, part: Text | Refusal) -> None:
        maker = self._made()
        self._shown = True
        if self._open is not None and (
            self._open["type"] != "message" or maker.begins_message(part)
        ):
            self._close("completed")
        if self._open is None:
            self._add(maker.message(part, len(self._output), "in_progress"))
        self._send(
            "response.content_part.added",
            **self._about(),
            content_index=self._content_index(),
            part=maker.content(msgspec.structs.replace(part, text="")),
        )
        self._grow(part.text)

    def _content_index(self) -> int:
        return len((self._open or {}).get("content", ()))

    def _show_thinking(self, part: Thinking) -> None:
        self._close("completed")
        self._shown = True
        empty = msgspec.structs.replace(part, text="", signature=None)
        if part.origin != NAME:
            empty = msgspec.structs.replace(empty, more={})  # what it says is sealed at the end
        self._add(_without_content(self._made().thinking(empty, len(self._output))))
        self._grow(part.text)

    def _show_call(self, part: Call) -> None:
        maker = self._made()
        self._close("completed")
        if part.signature is not None and part.origin != NAME:
            self._whole(maker.signatures([part], len(self._output)))
        self._shown = True
        empty = msgspec.structs.replace(part, arguments="")
        self._add(maker.call(empty, len(self._output), "in_progress"))
        self._grow(part.arguments)

    def _grow(self, text: str) -> None:
        part = self._part
        if not text or part is None:
            return
        if isinstance(part, Text | Refusal):
            if not self._shown:
                self._show_text(part)
            self._pieces.append(text)
            kind, after = "response.refusal.delta", b""
            if isinstance(part, Text):
                kind, after = "response.output_text.delta", b',"logprobs":[]'
            self._delta(kind, {"content_index": self._content_index()}, text, after)
        elif isinstance(part, Call):
            self._argue(part, text)
        elif isinstance(part, Thinking):
            self._think(part, text)

    def _argue(self, part: Call, text: str) -> None:
        """Arguments that are blank so far are held: they may be none at all, told as `{}`."""
        self._pieces.append(text)
        if self._blank and part.kind == "function":
            if text.isspace():
                return
            text = "".join(self._pieces)
        self._blank = False
        self._delta(_deltas(part), {}, text)

    def _think(self, part: Thinking, text: str) -> None:
        raw = _is_raw(part)
        if not self._pieces:
            self._send(
                "response.content_part.added" if raw else "response.reasoning_summary_part.added",
                **self._about(),
                **_place(raw),
                part=_thought(raw, ""),
            )
        self._pieces.append(text)
        kind = "response.reasoning_text.delta" if raw else "response.reasoning_summary_text.delta"
        self._delta(kind, _place(raw), text)

    def _sign(self, signature: str, origin: str) -> None:
        part = self._part
        if isinstance(part, Thinking):
            self._part = msgspec.structs.replace(part, signature=signature, origin=origin)
        elif isinstance(part, Call) and part.signature is None and origin != NAME:
            self._signed_late = msgspec.structs.replace(part, signature=signature, origin=origin)

    def _note(self, name: str, value: Any) -> None:
        if not isinstance(self._part, Text):
            return
        if not self._made_own():
            self._losses.lose(f"content.{name}")
            return
        noted = self._noted.setdefault(name, [])
        if name == "annotations":
            before = cast("list[Any]", self._part.more.get("annotations") or [])
            self._send(
                "response.output_text.annotation.added",
                **self._about(),
                content_index=self._content_index(),
                annotation_index=len(before) + len(noted),
                annotation=value,
            )
        noted.append(value)

    def _made_own(self) -> bool:
        return self._frame is not None and self._frame.own

    def _end_part(self) -> None:
        part, self._part = self._part, None
        if part is None or not self._shown:
            return
        text = "".join(self._pieces)
        if isinstance(part, Text | Refusal):
            self._end_text(part, text)
        elif isinstance(part, Thinking):
            self._end_thinking(part, text)
        elif isinstance(part, Call):
            self._end_call(part, text)

    def _end_text(self, part: Text | Refusal, text: str) -> None:
        whole = msgspec.structs.replace(part, text=text)
        if isinstance(whole, Text) and self._noted:
            more = dict(whole.more)
            for name, values in self._noted.items():
                more[name] = [*more.get(name, ()), *values]
            whole = msgspec.structs.replace(whole, more=more)
        content = self._made().content(whole)
        about = {**self._about(), "content_index": self._content_index()}
        if isinstance(part, Refusal):
            self._send("response.refusal.done", **about, refusal=text)
        else:
            logprobs = content.get("logprobs", [])
            self._send("response.output_text.done", **about, text=text, logprobs=logprobs)
        self._send("response.content_part.done", **about, part=content)
        cast("list[Any]", cast("dict[str, Any]", self._open)["content"]).append(content)

    def _end_thinking(self, part: Thinking, text: str) -> None:
        raw = _is_raw(part)
        if self._pieces:
            about = {**self._about(), **_place(raw)}
            said = "reasoning_text" if raw else "reasoning_summary_text"
            ended = "content_part" if raw else "reasoning_summary_part"
            self._send(f"response.{said}.done", **about, text=text)
            self._send(f"response.{ended}.done", **about, part=_thought(raw, text))
        whole = msgspec.structs.replace(part, text=text)
        self._open = self._made().thinking(whole, len(self._output))

    def _end_call(self, part: Call, text: str) -> None:
        custom = part.kind == "custom"
        if not custom and not text.strip():
            text = "{}"
            self._delta(_deltas(part), {}, text)
        item = cast("dict[str, Any]", self._open)
        member = "input" if custom else "arguments"
        item[member] = text
        kind = "custom_tool_call_input" if custom else "function_call_arguments"
        members = {member: text} if custom else {"name": part.name, member: text}
        self._send(f"response.{kind}.done", **self._about(), **members)


def _deltas(part: Call) -> str:
    said = "custom_tool_call_input" if part.kind == "custom" else "function_call_arguments"
    return f"response.{said}.delta"


def _is_raw(part: Thinking) -> bool:
    return part.origin == NAME and is_marked(part.more, RAW)


def _place(raw: bool) -> dict[str, Any]:
    return {"content_index" if raw else "summary_index": 0}


def _thought(raw: bool, text: str) -> dict[str, Any]:
    return {"type": "reasoning_text" if raw else "summary_text", "text": text}


def _without_content(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "summary": []} if "content" not in item else {**item, "content": []}
