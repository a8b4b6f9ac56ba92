"""Streams, read: the events of an answer as it comes.

Servers leave out much of it: lifecycle events, the beginnings of items, deltas. Whatever tells a
part first begins it; what tells it whole fills in what is missing.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects.openai_faults import fault_of
from reflexarc.wire.dialects.responses.items_in import NAME
from reflexarc.wire.dialects.responses.replies import created_s, fault_in, stop_from
from reflexarc.wire.dialects.responses.streams_parts import PartsReader
from reflexarc.wire.dialects.responses.streams_state import objects
from reflexarc.wire.faults import Fault
from reflexarc.wire.replies import Began, Ended, Event, Failed
from reflexarc.wire.sse import SseEvent
from reflexarc.wire.usage import usage_from_responses

_Value = dict[str, Any]


class ResponsesStreamReader:
    def __init__(self) -> None:
        self._events: list[Event] = []
        self._parts = PartsReader()
        self._began = False
        self._over = False

    def read(self, event: SseEvent) -> list[Event]:
        if self._over:
            return []
        self._events = []
        data = event.data.strip()
        if data == b"[DONE]":
            self._end({})  # over, and nobody said how it ended
        elif data:
            self._read(data, event.name)
        return self._events

    def close(self) -> list[Event]:
        if self._over:
            return []
        self._events = []
        words = "the upstream's stream broke off before its end"
        self._fail(Fault("upstream", words, 502, code="upstream_truncated"))
        return self._events

    def _read(self, data: bytes, name: bytes) -> None:
        try:
            value: Any = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            self._malformed(f"an event is not JSON: {error}")
            return
        if not isinstance(value, dict):
            self._malformed("an event is no JSON object")
            return
        members = cast(_Value, value)
        kind: Any = members.get("type")
        if not isinstance(kind, str):
            kind = name.decode("utf-8", "replace")
        try:
            of_parts = _OF_PARTS.get(kind)
            if of_parts is not None:
                of_parts(self._parts, members)
                self._take_parts()
            else:
                self._of_answer(kind, members)
        except MalformedError as error:
            self._malformed(str(error))

    def _of_answer(self, kind: str, value: _Value) -> None:
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self._begin_answer(value)
        elif kind in ("response.completed", "response.done"):
            self._end(value, "completed")
        elif kind == "response.incomplete":
            self._end(value, "incomplete")
        elif kind in ("response.failed", "response.cancelled"):
            self._fail(fault_in(_inner(value, "response")) or fault_of(value))
        elif kind in ("error", "response.error") or value.get("error"):
            self._fail(fault_of(value))
        elif value.get("object") == "response":
            # The whole answer in place of a stream of it.
            self._end({"response": value})

    def _take_parts(self) -> None:
        if self._parts.events:
            self._begin_answer({})
            self._events.extend(self._parts.events)
            self._parts.events.clear()

    def _begin_answer(self, value: _Value) -> None:
        if not self._began:
            response = _inner(value, "response")
            identity, model = response.get("id"), response.get("model")
            tier = response.get("service_tier")
            self._began = True
            self._events.append(
                Began(
                    identity if isinstance(identity, str) else "",
                    model if isinstance(model, str) else "",
                    created_s(response.get("created_at")),
                    service_tier=tier if isinstance(tier, str) else None,
                    origin=NAME,
                )
            )

    def _end(self, value: _Value, status: str | None = None) -> None:
        response = _inner(value, "response")
        fault = fault_in(response)
        if fault is not None:
            self._fail(fault)
            return
        self._begin_answer(value)
        for index, item in objects(response.get("output")):
            self._parts.whole_item(item, index)
        self._parts.end()
        self._take_parts()
        if status is not None and not isinstance(response.get("status"), str):
            response = {**response, "status": status}
        tier: Any = response.get("service_tier")
        self._over = True
        self._events.append(
            Ended(
                stop_from(response, calls=self._parts.calls, refused=self._parts.refused),
                usage=usage_from_responses(response.get("usage")),
                service_tier=tier if isinstance(tier, str) else None,
            )
        )

    def _fail(self, fault: Fault) -> None:
        self._over = True
        self._events.append(Failed(fault))

    def _malformed(self, why: str) -> None:
        words = f"the upstream's stream cannot be read: {why}"
        self._fail(Fault("upstream", words, 502, code="upstream_malformed"))


def _inner(value: _Value, name: str) -> _Value:
    inner = value.get(name)
    return cast(_Value, inner) if isinstance(inner, dict) else {}


_OF_PARTS: dict[str, Callable[[PartsReader, _Value], None]] = {
    "response.output_item.added": PartsReader.item_added,
    "response.output_item.done": PartsReader.item_done,
    "response.content_part.added": PartsReader.content_added,
    "response.content_part.done": PartsReader.content_done,
    "response.output_text.delta": PartsReader.text_delta,
    "response.output_text.done": PartsReader.text_done,
    "response.output_text.annotation.added": PartsReader.annotation,
    "response.refusal.delta": PartsReader.refusal_delta,
    "response.refusal.done": PartsReader.refusal_done,
    "response.function_call_arguments.delta": PartsReader.function_delta,
    "response.function_call_arguments.done": PartsReader.function_done,
    "response.custom_tool_call_input.delta": PartsReader.custom_delta,
    "response.custom_tool_call_input.done": PartsReader.custom_done,
    "response.reasoning_summary_text.delta": PartsReader.summary_delta,
    "response.reasoning_text.delta": PartsReader.reasoning_delta,
}
