"""Mutations of requests, answers and streams: of their bytes, and of what these say."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from reflexarc.wire.sse import SseParser

_WORDS = (
    "text", "type", "id", "index", "role", "content", "name", "arguments", "function", "delta",
    "choices", "usage", "error", "message", "tool_calls", "input", "output", "item", "parts",
    "candidates", "finish_reason", "stop_reason", "finishReason", "status", "tool_use", "thinking",
    "signature", "reasoning", "call_id", "functionCall", "functionResponse", "user", "assistant",
    "tool", "system", "model", "function_call", "refusal", "stop", "length", "reflexarc-1.e30=",
)  # fmt: skip
_ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**40, 0.5, -0.0, 1e308, "", " ", "\u2028",
    "\x00", "\n\n", "data: x\n\n", "{", "{}", "[]", '{"a":1}', "[1]", "a" * 2000, "\U0001f600",
    [], {}, [None], [[]], {"": ""}, {"type": None}, {"type": "text"}, "skip_thought", "call_1",
)  # fmt: skip
_BYTES = (
    b"\r",
    b"\n",
    b"\n\n",
    b"\x00",
    b"\xff",
    b"\xe2\x80\xa8",
    b'"',
    b"{",
    b"}",
    b"data:",
    b":",
)


class Mutator:
    """`others` are inputs to take pieces from."""

    def __init__(self, draw: random.Random, others: list[bytes]) -> None:
        self._draw = draw
        self._others = others

    def text(self, data: bytes) -> bytes:
        """A body: its JSON or its bytes changed."""
        try:
            value = json.loads(data)
        except ValueError:
            return self.raw(data)
        for _ in range(self._draw.choice((1, 1, 2, 3, 5))):
            value = self._value(value)
        made = self._encoded(value)
        return self.raw(made) if self._draw.random() < 0.15 else made

    def stream(self, data: bytes) -> bytes:
        """Events changed, dropped, doubled, put elsewhere; then now and then the bytes."""
        parser = SseParser()
        events: list[tuple[bytes, bytes]] = [(e.name, e.data) for e in parser.feed(data)]
        for _ in range(self._draw.choice((0, 1, 1, 2, 4))):
            events = self._events(events)
        end = self._draw.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r"))
        out = b"".join(
            (b"event: " + name + end if name else b"") + b"data: " + body + end + end
            for name, body in events
        )
        return self.raw(out) if self._draw.random() < 0.2 else out

    def pieces(self, data: bytes) -> list[bytes]:
        cuts = sorted(self._draw.randrange(len(data) + 1) for _ in range(self._draw.randrange(6)))
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]

    def raw(self, data: bytes) -> bytes:
        draw = self._draw
        for _ in range(draw.choice((1, 1, 2, 4))):
            at = draw.randrange(len(data) + 1)
            to = min(len(data), at + draw.choice((1, 1, 2, 8, 64)))
            kind = draw.randrange(6)
            if kind == 0:
                data = data[:at] + data[to:]
            elif kind == 1:
                data = data[:at] + data[at:to] * 2 + data[to:]
            elif kind == 2:
                data = data[:at] + draw.choice(_BYTES) + data[at:]
            elif kind == 3:
                data = data[:at] + bytes([draw.randrange(256)]) + data[to:]
            elif kind == 4:
                data = data[:at]
            else:
                other = draw.choice(self._others)
                data = data[:at] + other[draw.randrange(len(other) + 1) :]
        return data

    def _encoded(self, value: Any) -> bytes:
        ascii_only = self._draw.random() < 0.5
        return json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    def _events(self, events: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        if not events:
            return events
        draw, at = self._draw, self._draw.randrange(len(events))
        kind = draw.randrange(7)
        if kind == 0:
            return events[:at] + events[at + 1 :]
        if kind == 1:
            return [*events[: at + 1], events[at], *events[at + 1 :]]
        if kind == 2:
            other = draw.randrange(len(events))
            events[at], events[other] = events[other], events[at]
            return events
        if kind == 3:
            others = SseParser().feed(draw.choice(self._others))
            taken = [(e.name, e.data) for e in others[: draw.randrange(4)]]
            return events[:at] + taken + events[at:]
        name, body = events[at]
        try:
            value = self._value(json.loads(body))
        except ValueError:
            return events
        changed = self._encoded(value).replace(b"\n", b" ")
        return [*events[:at], (name, changed), *events[at + 1 :]]

    def _value(self, value: Any) -> Any:
        places = _places(value)
        if not places:
            return self._draw.choice(_ODD)
        value = copy.deepcopy(value)
        way = self._draw.choice(places)
        held = value
        for step in way[:-1]:
            held = held[step]
        self._change(held, way[-1])
        return value

    def _change(self, held: Any, key: Any) -> None:
        draw = self._draw
        changes: tuple[Callable[[], Any], ...] = (
            lambda: draw.choice(_ODD),
            lambda: draw.choice(_WORDS),
            lambda: [held[key]],
            lambda: {draw.choice(_WORDS): held[key]},
            lambda: copy.deepcopy(draw.choice(list(held.values() if type(held) is dict else held))),
            lambda: [held[key], copy.deepcopy(held[key])],
            lambda: _nested(held[key], draw.randrange(200)) if draw.random() < 0.1 else None,
        )
        kind = draw.randrange(10)
        if kind == 0:
            del held[key]
        elif kind == 1 and isinstance(held, dict):
            held[draw.choice(_WORDS)] = held.pop(key)
        elif kind == 2 and isinstance(held, list):
            held.insert(draw.randrange(len(held) + 1), copy.deepcopy(held[key]))
        else:
            held[key] = draw.choice(changes)()


def _nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def _places(value: Any) -> list[list[Any]]:
    """The ways to every value inside another."""
    found: list[list[Any]] = []
    left: list[tuple[list[Any], Any]] = [([], value)]
    while left:
        way, held = left.pop()
        if isinstance(held, dict):
            inner = list(held.items())
        else:
            inner = list(enumerate(held)) if isinstance(held, list) else []
        for key, one in inner:
            found.append([*way, key])
            if isinstance(one, dict | list):
                left.append((found[-1], one))
    return found
