"""Asks the embedded engine over HTTP, streamed, and tells what that took of its process."""

import json
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from acceptance.processes import cpu_s
from reflexarc.upstream.embedded import COUNT_PATH, Embedded

Messages = list[dict[str, str]]

_PEOPLE = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Frances", "Niklaus")
_CITIES = ("Oslo", "Turin", "Lagos", "Quito", "Hanoi", "Perth", "Izmir", "Malmo")
_THINGS = ("red shoes", "a lamp", "two mugs", "a desk", "wool socks", "a kettle", "books")


class Took(NamedTuple):
    """One answer: its tokens, of the prompt those found in the cache; of what was drafted what was
    right and what was not; CPU of the engine's process and time to the first token."""

    prompt: int
    cached: int
    written: int
    accepted: int
    rejected: int
    first_cpu_s: float
    first_s: float


class Spent(NamedTuple):
    """Answers asked for at once. CPU of the engine's process and time until the last was whole."""

    answers: list[Took]
    cpu_s: float
    seconds: float

    @property
    def read(self) -> int:
        return sum(took.prompt - took.cached for took in self.answers)

    @property
    def written(self) -> int:
        return sum(took.written for took in self.answers)


def orders(seed: int, number: int) -> str:
    """Records as a tool returns them, none like another."""
    draw = Random(seed)
    records = [
        {
            "order_id": f"ord-{draw.randrange(10_000, 99_999)}",
            "customer": draw.choice(_PEOPLE),
            "city": draw.choice(_CITIES),
            "bought": draw.choice(_THINGS),
            "total_usd": draw.randrange(500, 50_000) / 100,
            "note": f"call {draw.randrange(1_000_000)} before {draw.randrange(8, 20)}:00",
        }
        for _ in range(number)
    ]
    return "\n".join(json.dumps(record) for record in records)


def counted(engine: Embedded, messages: Messages) -> int:
    connection, path = _connection(engine)
    try:
        body = json.dumps({"model": "m", "messages": messages})
        connection.request("POST", f"{path}{COUNT_PATH}", body)
        return json.loads(connection.getresponse().read())["input_tokens"]
    finally:
        connection.close()


def ask(engine: Embedded, messages: Messages, session: str, max_tokens: int) -> Took:
    """Raises `RuntimeError` for an answer that is none."""
    assert engine.pid is not None
    connection, path = _connection(engine)
    body = {
        "model": "m", "messages": messages, "max_tokens": max_tokens, "stream": True,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    try:
        began_s, began_cpu_s = time.monotonic(), cpu_s(engine.pid)
        connection.request(
            "POST", f"{path}/chat/completions", json.dumps(body), {"x-session-id": session}
        )
        response = connection.getresponse()
        first = response.readline()
        first_cpu_s, first_s = cpu_s(engine.pid) - began_cpu_s, time.monotonic() - began_s
        rest = response.read().decode()
    finally:
        connection.close()
    events = [line[6:] for line in rest.splitlines() if line.startswith("data: {")]
    usage: Any = json.loads(events[-1])["usage"] if events else None
    if response.status != 200 or not usage:
        raise RuntimeError(
            f"the engine answered {response.status}: {(first + rest.encode())[:300]}"
        )
    drafted = usage.get("completion_tokens_details", {})
    return Took(
        usage["prompt_tokens"],
        usage["prompt_tokens_details"]["cached_tokens"],
        usage["completion_tokens"],
        drafted.get("accepted_prediction_tokens", 0),
        drafted.get("rejected_prediction_tokens", 0),
        first_cpu_s,
        first_s,
    )


def at_once(engine: Embedded, asked: Sequence[Messages], max_tokens: int) -> Spent:
    """Each a session of its own: the same ones at each call."""
    assert engine.pid is not None
    found: list[Took] = []

    def one(number: int) -> None:
        found.append(ask(engine, asked[number], f"session {number}", max_tokens))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(asked))]
    began_s, began_cpu_s = time.monotonic(), cpu_s(engine.pid)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = Spent(found, cpu_s(engine.pid) - began_cpu_s, time.monotonic() - began_s)
    if len(found) != len(asked):
        raise RuntimeError(f"{len(asked) - len(found)} of {len(asked)} answers failed")
    return took


def _connection(engine: Embedded) -> tuple[HTTPConnection, str]:
    url = urlsplit(engine.base_url)
    return HTTPConnection("127.0.0.1", url.port or 0, timeout=600), url.path
