"""What an upstream tells in its headers reaches a client that reads bodies; a list of models is in
the dialect of whoever asks for it, though its path is that of several."""

import json
from typing import Any

import pytest

from reflexarc.gateway.converted import retry_hint_s

from .conftest import Starter
from .upstream import MODEL, Upstream, http_answer


@pytest.mark.parametrize(
    ("headers", "hint_s"),
    [
        ([(b"Retry-After", b"7")], 7.0),
        ([(b"retry-after", b"7"), (b"retry-after-ms", b"6500")], 6.5),
        ([(b"retry-after", b"Wed, 21 Oct 2026 07:28:00 GMT")], None),
        ([(b"retry-after", b"-1")], None),
        ([], None),
    ],
)
def test_a_hint_is_read_from_headers(headers: list[Any], hint_s: float | None) -> None:
    assert retry_hint_s(headers) == hint_s


async def test_a_hint_in_a_header_stands_in_the_body_of_googles_error(
    start: Starter, upstream: Upstream
) -> None:
    upstream.answer = (
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n"
    )
    running = await start(dialect="chat")
    body = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    answer = await running.post(f"/v1beta/models/{MODEL}:generateContent", body)
    assert answer.status == 429
    delays = [detail.get("retryDelay") for detail in answer.json["error"]["details"]]
    assert "7s" in delays


async def test_a_list_of_models_is_googles_for_googles_client_under_v1(
    start: Starter, upstream: Upstream
) -> None:
    listed = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1}]}
    upstream.answer = http_answer(json.dumps(listed).encode())
    running = await start(dialect="chat")
    googles = (await running.get("/v1/models", {"x-goog-api-key": "k"})).json
    assert [model["name"] for model in googles["models"]] == ["models/m"]
    assert (await running.get("/v1/models", {"authorization": "Bearer k"})).json == listed


async def test_a_count_that_is_refused_keeps_its_status_and_hint(
    start: Starter, upstream: Upstream
) -> None:
    running = await start(dialect="gemini")
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
    path = "/v1/messages/count_tokens"
    upstream.answer = (
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n"
    )
    answer = await running.post(path, body)
    assert (answer.status, answer.json["error"]["type"]) == (429, "rate_limit_error")
    assert answer.header("retry-after") == "7"
    for unreadable in (b"<html>", b'{"totalTokens": "many"}', b"[]"):
        upstream.answer = http_answer(unreadable)
        assert (await running.post(path, body)).status == 502, unreadable


async def test_a_list_that_fails_says_why(start: Starter, upstream: Upstream) -> None:
    running = await start(dialect="chat")
    headers = {"anthropic-version": "2023-06-01"}
    upstream.answer = http_answer(b"<h1>no key, no list</h1>", status="401 Unauthorized")
    answer = await running.get("/v1/models", headers)
    assert (answer.status, answer.json["error"]["type"]) == (401, "authentication_error")
    assert "no key, no list" in answer.json["error"]["message"]
    upstream.answer = http_answer(b"<html>")
    assert (await running.get("/v1/models", headers)).status == 502


@pytest.mark.parametrize(("dialect", "asked"), [("messages", b"limit"), ("gemini", b"pageSize")])
async def test_the_whole_list_is_asked_for(
    dialect: str, asked: bytes, start: Starter, upstream: Upstream
) -> None:
    running = await start(dialect=dialect)
    await running.get("/v1/models")
    assert upstream.received[0].target == b"/v1/models?" + asked + b"=1000"


async def test_whoever_asks_for_the_list_the_key_is_where_the_upstream_reads_it(
    start: Starter, upstream: Upstream
) -> None:
    running = await start(
        dialect=("chat", "messages"), api_key_env="KEY", environment={"KEY": "ours"}
    )
    for headers, name, value in (
        ({"anthropic-version": "2023-06-01"}, b"x-api-key", b"ours"),
        ({}, b"authorization", b"Bearer ours"),
    ):
        await running.get("/v1/models", headers)
        assert upstream.received.pop().header(name) == value
