"""The published latency point, measured over real HTTP on the simulators: a cold prompt of 25,000
tokens answered by a 15-token tool call."""

import time
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from reflexarc.bench.demo_processes import simulator
from reflexarc.sim.profiles import PUBLISHED_OUTPUT_TOKENS, PUBLISHED_PROMPT_TOKENS
from reflexarc.steps.errors import UpstreamError
from reflexarc.traces import write_sessions

_MODEL = "published"
_BYTES_PER_TOKEN = 4
_QUESTION = {"role": "user", "content": "Which order is it?"}
_NAME, _ARGUMENT = "get_order", "order_id"


class PublishedPoint(msgspec.Struct, frozen=True):
    """One measurement; `latency_ms` is the client's."""

    profile: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    latency_ms: float


async def measure_published(profile: str, folder: Path) -> PublishedPoint:
    """Start a simulator that has the answer recorded, ask it once, stop it."""
    messages = _messages()
    path = folder / "published.jsonl"
    line: dict[str, Any] = {"id": "published", "task": "published", "model": _MODEL, "tools": []}
    line["messages"] = [*messages, _answer()]
    write_sessions(path, [msgspec.json.encode(line)])
    body = msgspec.json.encode({"model": _MODEL, "messages": messages})
    log = folder / f"published_{profile}.log"
    with simulator(profile, 1.0, log, policy=f"recorded:{path}") as url:
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{url}/models") as warm:  # a connection, as an agent keeps one
                await warm.read()
            began = time.perf_counter()
            headers = {"content-type": "application/json"}
            async with http.post(f"{url}/chat/completions", data=body, headers=headers) as answer:
                completion: Any = msgspec.json.decode(await answer.read())
            latency_ms = (time.perf_counter() - began) * 1e3
    if answer.status != 200:
        raise UpstreamError(f"the simulator answered {answer.status}: {completion}")
    usage: dict[str, Any] = completion["usage"]
    return PublishedPoint(
        profile,
        usage["prompt_tokens"],
        usage["prompt_tokens_details"]["cached_tokens"],
        usage["completion_tokens"],
        latency_ms,
    )


def _messages() -> list[dict[str, str]]:
    """A system prompt and a question that together have exactly the published tokens."""
    system = {"role": "system", "content": ""}
    size = len(msgspec.json.encode(system)) + len(msgspec.json.encode(_QUESTION))
    missing = PUBLISHED_PROMPT_TOKENS * _BYTES_PER_TOKEN - size
    sentence = "Orders are looked up before anything is decided about them. "
    return [
        {**system, "content": (sentence * (missing // len(sentence) + 1))[:missing]},
        _QUESTION,
    ]


def _answer() -> dict[str, Any]:
    """A tool call that has exactly the published tokens."""
    empty = msgspec.json.encode({_ARGUMENT: ""})
    missing = PUBLISHED_OUTPUT_TOKENS * _BYTES_PER_TOKEN - len(_NAME) - len(empty)
    arguments = msgspec.json.encode({_ARGUMENT: "W" + "0" * (missing - 1)}).decode()
    function = {"name": _NAME, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_published", "type": "function", "function": function}],
    }
