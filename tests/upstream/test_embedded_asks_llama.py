"""Our client of llama.cpp, before servers that drop connections or draft what they tell odds of."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from reflexarc.upstream.embedded.llama import Llama

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def llama_before(handle: Handler) -> AsyncGenerator[Llama]:
    app = web.Application()
    app.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        async with aiohttp.ClientSession() as session:
            yield Llama(f"http://{host}:{port}", "key", session)
    finally:
        await runner.cleanup()


class Dropping:
    """Drops the first connections that a request comes on."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.asked += 1
        if self.left:
            self.left -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({"tokens": [1, 2]})


@pytest.mark.parametrize("times", [1, 2])
async def test_a_request_that_got_no_byte_is_sent_again(times: int) -> None:
    server = Dropping(times)
    async with llama_before(server.answer) as llama:
        assert await llama.tokens("x") == [1, 2]
    assert server.asked == times + 1


async def test_but_not_for_ever() -> None:
    server = Dropping(100)
    async with llama_before(server.answer) as llama:
        with pytest.raises(aiohttp.ClientError):
            await llama.tokens("x")
    assert server.asked == 3


async def test_an_answer_that_broke_off_is_not_asked_for_again() -> None:
    asked: list[int] = []

    async def breaking(request: web.Request) -> web.StreamResponse:
        asked.append(1)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'data: {"content": "a", "stop": false}\n\n')
        assert request.transport is not None
        request.transport.abort()
        return response

    async with llama_before(breaking) as llama:
        pieces = llama.write(0, "x", 4, {}, (), None)
        assert (await anext(pieces)).content == "a"
        with pytest.raises(aiohttp.ClientError):
            await anext(pieces)
    assert asked == [1]


async def test_odds_of_drafted_words_are_asked_for_word_by_word() -> None:
    """Of what was drafted it tells 1 for a probability, a logarithm of 0."""
    prompts: list[Any] = []

    async def drafting(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        if request.path == "/tokenize":
            return web.json_response({"tokens": [100, 101]})
        prompts.append(body["prompt"])
        words = body["n_predict"]
        drafted = words > 1
        odds = [{"logprob": 0.0 if drafted and i else -1.5} for i in range(words)]
        timings = {"cache_n": 0, "draft_n": words - 1} if drafted else {"cache_n": 0}
        return web.json_response(
            {
                "content": "x",
                "tokens_predicted": words,
                "completion_probabilities": odds,
                "timings": timings,
            }
        )

    async with llama_before(drafting) as llama:
        assert await llama.score(3, "Say:", [7, 8, 9]) == pytest.approx(-4.5)
    assert prompts == ["Say:", [100, 101], [100, 101, 7], [100, 101, 7, 8]]
