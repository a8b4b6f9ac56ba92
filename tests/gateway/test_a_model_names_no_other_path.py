"""A model's name stands in the path of Gemini's requests: it leads to no other path, and what is
escaped in it stays so."""

import yarl

from .conftest import Starter
from .upstream import MODEL, Upstream, http_answer

ELSEWHERE = ("../../admin/x", "a/../../b", "..", "", "models/", "a//b")
PATHS = ("/v1/messages", "/v1/messages/count_tokens")
SAID = {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}


async def test_a_name_that_leads_elsewhere_is_refused(start: Starter, upstream: Upstream) -> None:
    gateway = await start(dialect="gemini", mode="off")
    for path in PATHS:
        for model in ELSEWHERE:
            answer = await gateway.post(path, {"model": model, **SAID})
            assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
    assert upstream.received == []


async def test_a_name_is_escaped_and_one_that_is_stays_so(
    start: Starter, upstream: Upstream
) -> None:
    upstream.answer = http_answer(b'{"totalTokens": 7}')
    gateway = await start(dialect="gemini", mode="off")
    for path in PATHS:
        await gateway.post(path, {"model": "tunedModels/a b?key=x#\r\nx-evil: 1", **SAID})
        received = upstream.received.pop()
        name, _, _ = received.target.rpartition(b":")
        assert name == b"/v1/models/tunedModels/a%20b%3Fkey=x%23%0D%0Ax-evil:%201"
        assert received.header(b"x-evil") is None

    target = f"/v1/models/{MODEL}%3Fa%20b%0d%0Ax:generateContent"
    body = {"contents": [{"parts": [{"text": "hi"}]}]}
    url = yarl.URL(gateway.base + target, encoded=True)
    async with gateway.client.post(url, json=body) as answer:
        assert answer.status == 200
    assert upstream.received[0].target == target.encode()
