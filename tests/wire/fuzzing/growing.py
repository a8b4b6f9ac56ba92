"""Whether the work grows with the input and no faster: twice the input is at most thrice the work,
in CPU time over sizes that are large."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import NAMES, dialect
from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Began, Ended, Event, PartBegan, PartEnded, PartGrew
from reflexarc.wire.turns import Call, Text, Thinking
from tests.wire.matrix.cells import NOW_S, answering, ask_in

_LEAST_S = 0.2
_MOST_TIMES = 3.0
_TRIES = 5
_MOST_BYTES = 2_000_000


def growths() -> Iterator[tuple[str, float]]:
    """What was tried, and by how much the work grew when the input doubled. Every kind is read in
    every dialect and written in every dialect, not in every pair of them."""
    for at, origin in enumerate(NAMES):
        for step, (kind, make) in enumerate(_STREAMS.items()):
            target = NAMES[(at + step) % len(NAMES)]
            run, data_of = _converter(origin, target), _stream_maker(origin, make)
            yield f"{kind} {origin} to {target}", _growth(run, data_of)
        target = NAMES[(at + 1) % len(NAMES)]
        yield f"turns {origin} to {target}", _growth(_asker(origin, target), _turns(origin))
    repeated = _converter("chat", "messages")
    yield "id and name in every chunk", _growth(repeated, _named_again)


def too_fast(growth: float) -> bool:
    return growth > _MOST_TIMES


def _growth(run: Callable[[bytes], None], data_of: Callable[[int], bytes]) -> float:
    """The least of a few tries: other programs are at work too."""
    count = 200
    while len(data := data_of(count)) < _MOST_BYTES and _cpu_s(run, data) < _LEAST_S:
        count *= 2
    once, twice = data_of(count), data_of(2 * count)
    found: list[float] = []
    for _ in range(_TRIES):
        found.append(_cpu_s(run, twice) / _cpu_s(run, once))
        if not too_fast(min(found)):
            break
    return min(found)


def _cpu_s(run: Callable[[bytes], None], data: bytes) -> float:
    began_s = time.process_time()
    run(data)
    return time.process_time() - began_s


def _converter(origin: str, target: str) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        conversion = answering(origin, target, stream=True)
        conversion.on_reply = lambda _: None
        stream = conversion.stream()
        for at in range(0, len(data), 1024):
            stream.feed(data[at : at + 1024])
        stream.close()
        assert stream.fault is None, stream.fault

    return run


def _asker(origin: str, target: str) -> Callable[[bytes], None]:
    where = Where("model-a") if origin == "gemini" else Where()

    def run(data: bytes) -> None:
        ask = read_ask(dialect(origin), data, where, TurnMemory())
        Conversion(dialect(origin), dialect(target), ask, NOW_S).request()

    return run


def _grown(part: Any, texts: list[str]) -> list[Event]:
    return [PartBegan(0, part), *(PartGrew(0, text) for text in texts), PartEnded(0)]


def _many_calls(count: int) -> list[Event]:
    events: list[Event] = []
    for at in range(count):
        events += [PartBegan(at, Call(f"call_{at}", "f", "")), PartGrew(at, "{}"), PartEnded(at)]
    return events


def _arguments(count: int) -> list[Event]:
    texts = ['{"a":"', *(["xxxxxxxxxx"] * count), '"}']
    return _grown(Call("call_1", "f", ""), texts)


_STREAMS: dict[str, Callable[[int], list[Event]]] = {
    "text": lambda count: _grown(Text(""), ["word "] * count),
    "thinking": lambda count: _grown(Thinking("", origin="chat"), ["word "] * count),
    "arguments": _arguments,
    "calls": _many_calls,
}


def _stream_maker(origin: str, make: Callable[[int], list[Event]]) -> Callable[[int], bytes]:
    def data_of(count: int) -> bytes:
        writer = dialect(origin).stream_writer(ask_in(origin, stream=True), Losses(origin))
        events: list[Event] = [Began("a1", "model-a", 1), *make(count), Ended("end")]
        return b"".join(writer.write(event) for event in events)

    return data_of


def _turns(origin: str) -> Callable[[int], bytes]:
    def data_of(count: int) -> bytes:
        messages: list[dict[str, Any]] = []
        for at in range(count):
            function = {"name": "f", "arguments": "{}"}
            call = {"id": f"call_{at}", "type": "function", "function": function}
            messages += [
                {"role": "user", "content": f"word {at}"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"call_{at}", "content": "x"},
            ]
        body = json.dumps({"model": "model-a", "messages": messages}).encode()
        ask = read_ask(dialect("chat"), body, Where(), TurnMemory())
        return Conversion(dialect("chat"), dialect(origin), ask, NOW_S).request()

    return data_of


def _named_again(count: int) -> bytes:
    texts = ['{"a":"', *(["xxxxxxxxxx"] * count), '"}']
    out: list[bytes] = []
    for text in texts:
        entry = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": text}}
        chunk = {"id": "x", "choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}
        out.append(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return b"".join([*out, b"data: [DONE]\n\n"])
