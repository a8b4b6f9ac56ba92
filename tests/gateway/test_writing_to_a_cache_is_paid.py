"""What an upstream that charges for writing to its cache tells is what a step costs, whoever asks:
3 tokens of input, 12,304 written and 550 of output at 3, 3.75 and 15 dollars are 0.0544 dollars."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

from reflexarc.gateway.config import Price

from .conftest import Starter
from .upstream import MODEL, Received, Upstream, http_answer

ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    "responses": ("/v1/responses", {"input": "hi"}),
    "messages": ("/v1/messages", {"messages": [{"role": "user", "content": "hi"}],
                                  "max_tokens": 5}),
    "gemini": (f"/v1beta/models/{MODEL}:generateContent",
               {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
}  # fmt: skip
PROMPT = {"input_tokens": 3, "cache_creation_input_tokens": 12304, "cache_read_input_tokens": 0}
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {**PROMPT, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 550}},
    {"type": "message_stop"},
)  # fmt: skip
WHOLE = {
    "id": "m", "type": "message", "role": "assistant", "model": MODEL, "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "x"}],
    "usage": {**PROMPT, "output_tokens": 550},
}  # fmt: skip


async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
    if json.loads(request.body).get("stream"):
        body = b"".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS
        )
        writer.write(http_answer(body, ("content-type", "text/event-stream")))
    else:
        writer.write(http_answer(json.dumps(WHOLE).encode()))
    await writer.drain()


async def recorded(state: Path, count: int) -> list[tuple[Any, ...]]:
    """Rows of steps: they come a moment after the answers, from another process."""
    found: list[tuple[Any, ...]] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            await asyncio.sleep(0.02)
            connection = sqlite3.connect(state / "reflexarc.db")
            try:
                found = connection.execute(
                    "select cost_micro_usd, cost_usd, prompt_tokens, cache_write_tokens,"
                    " completion_tokens, tokens_estimated, partial from steps"
                ).fetchall()
            finally:
                connection.close()
    return found


async def test_it_costs_the_same_in_every_dialect_streamed_and_not(
    start: Starter, upstream: Upstream, state_dir: Path
) -> None:
    upstream.answer = answer
    gateway = await start(
        dialect="messages", mode="off", price=Price(3, 15, cached=0.3, cache_write=3.75)
    )
    for client, (path, body) in ASKED.items():
        for stream in (False, True):
            if client == "gemini" and stream:
                asked = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
            else:
                asked = path
            streamed = {} if client == "gemini" else {"model": MODEL, "stream": stream}
            assert (await gateway.post(asked, {**body, **streamed})).status == 200
    assert [json.loads(one.body).get("stream", False) for one in upstream.received] == [
        False, True,
    ] * len(ASKED)  # fmt: skip
    rows = await recorded(state_dir, 2 * len(ASKED))
    assert rows == [(54_399, 0.054399, 12_307, 12_304, 550, 0, 0)] * (2 * len(ASKED))
