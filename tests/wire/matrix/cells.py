"""The golden matrix: every input under `requests`, `answers`, `streams` and `faults`, told to every
dialect, as text that a reviewer can read.

An input is a directory named after the fact it shows. `from.DIALECT.json` (or `.sse`) is what comes
in, `to.DIALECT.json` (or `.txt`) what goes out: `write.py` writes these, `test_matrix.py` compares.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reflexarc.steps.errors import InputError, MalformedError
from reflexarc.wire.assembling import BrokenOffError
from reflexarc.wire.converting import Conversion, TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import NAMES, dialect
from reflexarc.wire.faults import Fault
from reflexarc.wire.sse import SseParser
from reflexarc.wire.turns import Ask

HERE = Path(__file__).parent
SORTS = ("requests", "answers", "streams", "faults")
NOW_S = 1_800_000_000
REQUEST_ID = "req_matrix"
MODEL = "model-a"


class Input(NamedTuple):
    """One input. `origin` is the dialect it is in: a client's for requests, an upstream's else."""

    sort: str
    name: str
    origin: str
    path: Path

    def snapshot(self, target: str) -> Path:
        ending = "txt" if self.sort == "streams" else "json"
        return self.path.parent / f"to.{target}.{ending}"

    @property
    def title(self) -> str:
        return f"{self.sort}/{self.name}"


def inputs(*sorts: str) -> Iterator[Input]:
    for sort in sorts or SORTS:
        for path in sorted((HERE / sort).glob("*/from.*")):
            yield Input(sort, path.parent.name, path.suffixes[0][1:], path)


def told(given: Input, target: str) -> str:
    """What goes out, as the snapshot holds it."""
    data = given.path.read_bytes()
    if given.sort == "requests":
        return _pretty(_request(given.origin, data, target))
    if given.sort == "answers":
        return _pretty(_answer(given.origin, data, target))
    if given.sort == "faults":
        return _pretty(_fault(given.origin, data, target))
    return _stream(given.origin, data, target)


def ask_in(name: str, *, stream: bool) -> Ask:
    """A plain request of a client that speaks a dialect."""
    values: dict[str, Any] = {"model": MODEL}
    if name == "gemini":
        values = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
    elif name == "responses":
        values |= {"input": "Hello", "stream": stream}
    else:
        values |= {"messages": [{"role": "user", "content": "Hello"}], "stream": stream}
        values |= {"max_tokens": 4096} if name == "messages" else {}
        values |= {"stream_options": {"include_usage": True}} if name == "chat" and stream else {}
    where = Where(MODEL, stream) if name == "gemini" else Where()
    return read_ask(dialect(name), json.dumps(values).encode(), where, TurnMemory())


def answering(origin: str, target: str, *, stream: bool) -> Conversion:
    """The conversion of an answer that comes in `origin`, for a client that speaks `target`."""
    ask = ask_in(target, stream=stream)
    conversion = Conversion(dialect(target), dialect(origin), ask, NOW_S)
    conversion.request()
    return conversion


def _request(origin: str, data: bytes, target: str) -> dict[str, Any]:
    where = Where(MODEL) if origin == "gemini" else Where()
    try:
        ask = read_ask(dialect(origin), data, where, TurnMemory())
    except InputError as error:
        return {"refused": str(error)}
    conversion = Conversion(dialect(origin), dialect(target), ask, NOW_S)
    body = json.loads(conversion.request())
    return {"losses": conversion.losses.text(), "body": body}


def _answer(origin: str, data: bytes, target: str) -> dict[str, Any]:
    conversion = answering(origin, target, stream=False)
    try:
        body = json.loads(conversion.write(conversion.read(data)))
    except BrokenOffError as error:
        return _told_fault(target, error.fault)
    except MalformedError as error:
        return {"refused": str(error)}
    return {"losses": conversion.answer_losses.text(), "body": body}


def _stream(origin: str, data: bytes, target: str) -> str:
    conversion = answering(origin, target, stream=True)
    stream = conversion.stream()
    out = stream.feed(data) + stream.close()
    lines = [f"losses: {conversion.answer_losses.text()}"]
    if stream.fault is not None and not stream.begun:
        lines.append(_pretty(_told_fault(target, stream.fault)).rstrip())
    lines.extend(shown(out))
    return "".join(f"{line}\n" for line in lines)


def shown(stream: bytes) -> Iterator[str]:
    """One line for each event, comments too."""
    for block in stream.decode().split("\n\n"):
        if block.startswith(":"):
            yield block
            continue
        for event in SseParser().feed(block.encode() + b"\n\n"):
            yield f"{event.name.decode()} {event.data.decode()}".lstrip()


def _fault(origin: str, data: bytes, target: str) -> dict[str, Any]:
    """`data` tells a status and a body, an object or text."""
    given = json.loads(data)
    body = given["body"]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    conversion = answering(origin, target, stream=False)
    _, _, fault = conversion.fault(given["status"], raw, REQUEST_ID)
    return _told_fault(target, fault)


def _told_fault(target: str, fault: Fault) -> dict[str, Any]:
    status, body = dialect(target).write_fault(fault, REQUEST_ID)
    return {"status": status, "retry_after_s": fault.retry_after_s, "body": body}


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def every_cell() -> Iterator[tuple[Input, str]]:
    for given in inputs():
        for target in NAMES:
            yield given, target


def left_over() -> list[Path]:
    """Snapshots of inputs that are no more."""
    known = {given.snapshot(target) for given, target in every_cell()}
    return sorted(set(HERE.glob("*/*/to.*")) - known)
