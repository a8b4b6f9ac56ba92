"""The returns desk of these tests with LiteLLM's proxy before or behind a live gateway."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from acceptance.gateway_world import gateway_config
from acceptance.litellm_proxy import litellm
from openai import AsyncOpenAI

from reflexarc.reflex import Reflex
from tests.beside.conftest import PROMPT, TOOLS, Desk, ask_for
from tests.beside.tls_upstream import serving
from tests.gateway.upstream import MODEL, Upstream


class There(NamedTuple):
    """`url` and `key` are what a client needs; `upstream` is System 2, `desk` what it does, and
    `asked` the requests it got since the test began."""

    where: str
    url: str
    key: str
    upstream: Upstream
    desk: Desk

    @property
    def decision_header(self) -> str:
        """LiteLLM hands on the headers of who answered it under a name of its own."""
        theirs = "llm_provider-" if self.where == "before" else ""
        return f"{theirs}x-reflexarc-decision"

    def afresh(self) -> "There":
        self.upstream.received.clear()
        return self._replace(desk=Desk(self.upstream))

    def client(self) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=self.url, api_key=self.key, max_retries=0, timeout=60)


@contextmanager
def arranged(where: str, reflex: Reflex, folder: Path) -> Iterator[There]:
    """client > LiteLLM > gateway > System 2, or client > gateway > LiteLLM > System 2."""
    path = folder / "desk.reflex"
    reflex.save(path)
    with ExitStack() as stack:
        upstream = stack.enter_context(_served())

        def gateway(asks: str) -> str:
            config = gateway_config(
                folder, "ours", asks.removesuffix("/v1"), path, mode="live", deadline_ms=2000,
                audit=0,
            )  # fmt: skip
            port = stack.enter_context(serving("--config", str(config)))
            return f"http://127.0.0.1:{port}/v1"

        if where == "before":
            changes = {"http://127.0.0.1:8411/v1": gateway(upstream.url)}
            theirs = stack.enter_context(litellm("litellm-before.yaml", changes, folder))
            url = theirs.url
        else:
            changes = {"http://127.0.0.1:9100/v1": upstream.url}
            theirs = stack.enter_context(litellm("litellm-behind.yaml", changes, folder))
            url = gateway(theirs.url)
        yield There(where, url, theirs.key, upstream, Desk(upstream))


@contextmanager
def _served() -> Iterator[Upstream]:
    """An upstream in a thread of its own: it outlives the loop of each test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    upstream = Upstream()
    asyncio.run_coroutine_threadsafe(upstream.start(), loop).result(10)
    try:
        yield upstream
    finally:
        asyncio.run_coroutine_threadsafe(upstream.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


CHAT_TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": tool.__name__,
            "description": tool.__doc__,
            "parameters": {
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
                "additionalProperties": False,
            },
        },
    }
    for tool, argument in zip(TOOLS, ("customer", "order_id", "order_id"), strict=True)
]
_BY_NAME: dict[str, Callable[[str], str]] = {tool.__name__: tool for tool in TOOLS}


def opening(task: int) -> list[Any]:
    return [{"role": "system", "content": PROMPT}, {"role": "user", "content": ask_for(task)}]


async def run_agent(
    client: AsyncOpenAI, messages: list[Any], *, stream: bool = False, as_it_came: bool = False
) -> str:
    """The plain loop of an agent; adds its turns to `messages`: what a turn is made of, or with
    `as_it_came` all that the SDK read, which is how many agents keep them."""
    for _ in range(8):
        asked: dict[str, Any] = {"model": MODEL, "messages": messages, "tools": CHAT_TOOLS}
        if stream:
            async with client.chat.completions.stream(**asked) as events:
                answer: Any = await events.get_final_completion()
        else:
            answer = await client.chat.completions.create(**asked)
        message = answer.choices[0].message
        messages.append(message if as_it_came else _turn(message))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            result = _BY_NAME[call.function.name](*json.loads(call.function.arguments).values())
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise AssertionError("the agent never came to an end")


def _turn(message: Any) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.tool_calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
    return turn


async def run_plainly(url: str, prompt: str) -> str:
    """Without LiteLLM and without a gateway: what the reflex is learned from."""
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": prompt}]
    async with AsyncOpenAI(base_url=url, api_key="key") as client:
        return await run_agent(client, messages)
