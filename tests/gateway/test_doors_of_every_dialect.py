"""Which paths there are, whose errors they speak, what lists and counts they give."""

import json
from typing import Any

import pytest

from .conftest import Starter
from .upstream import MODEL, Upstream, http_answer

SAID = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    f"/v1beta/models/{MODEL}:generateContent": {"contents": [{"parts": [{"text": "hi"}]}]},
}


def message_of(path: str, body: Any) -> tuple[str, Any]:
    """The message of an error in its dialect's form, and what names its kind."""
    error = body["error"]
    if path == "/v1/messages":
        assert body["type"] == "error"
        return error["message"], error["type"]
    if "generateContent" in path:
        return error["message"], error["status"]
    return error["message"], error["code"]


@pytest.mark.parametrize("path", SAID)
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
async def test_an_unreachable_upstream_is_told_in_the_clients_form(
    path: str, dialect: str, start: Starter
) -> None:
    gateway = await start(upstream="http://127.0.0.1:9/v1", dialect=dialect, mode="off")
    answer = await gateway.post(path, {"model": MODEL, **SAID[path]})
    assert answer.status == 502
    message, _ = message_of(path, answer.json)
    assert "cannot be reached" in message
    assert answer.header("request-id" if path == "/v1/messages" else "x-request-id")


@pytest.mark.parametrize("path", SAID)
async def test_what_does_not_fit_is_told_in_the_clients_form(
    path: str, start: Starter, upstream: Upstream
) -> None:
    gateway = await start(dialect="messages" if path == "/v1/chat/completions" else "chat")
    for body in (
        b"{",
        b"[]",
        b'{"model":"a","model":"b"}',
        b'{"messages":7,"contents":7,"input":7}',
    ):
        answer = await gateway.post(path, body)
        assert answer.status == 400, body
        message, kind = message_of(path, answer.json)
        assert message
        assert kind
    async with gateway.client.put(gateway.base + path, data=b"") as put:
        assert put.status == 405
        assert put.headers["allow"] == "POST"
        assert message_of(path, await put.json())[0].endswith("method not allowed")
    assert upstream.received == []


async def test_keys_move_to_where_the_upstream_wants_them(
    start: Starter, upstream: Upstream
) -> None:
    wanted = {"chat": b"authorization", "messages": b"x-api-key", "gemini": b"x-goog-api-key"}
    for dialect, name in wanted.items():
        gateway = await start(dialect=dialect, mode="off")
        upstream.received.clear()
        for header, value in (
            ("authorization", "Bearer secret"),
            ("x-api-key", "secret"),
            ("x-goog-api-key", "secret"),
        ):
            await gateway.post("/v1/responses", {"model": MODEL, "input": "hi"}, {header: value})
            received = upstream.received.pop()
            given = received.header(name)
            assert given in (b"secret", b"Bearer secret"), (dialect, header)
            others = [one for one in wanted.values() if one != name]
            assert all(received.header(one) is None for one in others)
    keyed = await start(dialect="messages", mode="off", api_key_env="KEY", environment={"KEY": "k"})
    await keyed.chat(
        {"model": MODEL, **SAID["/v1/chat/completions"]}, {"authorization": "Bearer c"}
    )
    assert upstream.received[-1].header(b"x-api-key") == b"k"
    assert upstream.received[-1].header(b"authorization") is None
    assert upstream.received[-1].header(b"anthropic-version") == b"2023-06-01"


async def test_headers_of_a_dialect_pass_where_it_is_spoken_on_both_sides(
    start: Starter, upstream: Upstream
) -> None:
    gateway = await start(dialect="messages", mode="off")
    headers = {"anthropic-beta": "a-1,b-2", "anthropic-version": "2023-01-01"}
    body = {"model": MODEL, **SAID["/v1/messages"]}
    await gateway.post("/v1/messages", body, headers)
    for name, value in headers.items():
        assert upstream.received[0].header(name.encode()) == value.encode()


MODELS = {
    "chat": {"object": "list", "data": [{"id": "m/1", "object": "model", "owned_by": "us"}]},
    "messages": {"data": [{"id": "m/1", "type": "model", "display_name": "M One"}]},
    "gemini": {
        "models": [
            {"name": "models/m/1", "displayName": "M One"},
            {"name": "models/vectors", "supportedGenerationMethods": ["embedContent"]},
        ]
    },
}
ASKING = {
    "chat": ("/v1/models", {}),
    "messages": ("/v1/models", {"anthropic-version": "2023-06-01"}),
    "gemini": ("/v1beta/models", {}),
}


@pytest.mark.parametrize("dialect", MODELS)
@pytest.mark.parametrize("client", ASKING)
async def test_models_are_listed_in_the_clients_form(
    dialect: str, client: str, start: Starter, upstream: Upstream
) -> None:
    upstream.answer = http_answer(json.dumps(MODELS[dialect]).encode())
    gateway = await start(dialect=dialect, mode="off")
    path, headers = ASKING[client]
    listed = (await gateway.get(path, headers)).json
    if dialect == client:
        assert listed == MODELS[dialect]
        return
    if client == "gemini":
        assert [model["name"] for model in listed["models"]] == ["models/m/1"]
    else:
        (model,) = listed["data"]
        assert (model["id"], model["object"], model["type"]) == ("m/1", "model", "model")
        assert model["created_at"].endswith("Z")
    one = (await gateway.get(f"{path}/m/1", headers)).json
    assert one.get("id", one.get("name")) in ("m/1", "models/m/1")
    assert (await gateway.get(f"{path}/other", headers)).status == 404


async def test_googles_client_gets_its_list_wherever_it_asks(
    start: Starter, upstream: Upstream
) -> None:
    upstream.answer = http_answer(json.dumps(MODELS["chat"]).encode())
    gateway = await start(dialect="chat", mode="off")
    listed = (await gateway.get("/v1/models", {"x-goog-api-client": "google-genai-sdk/3"})).json
    assert listed["models"][0]["name"] == "models/m/1"


async def test_tokens_are_counted_where_they_can_be_and_estimated_where_not(
    start: Starter, upstream: Upstream
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "x" * 400}]}
    gateway = await start(dialect="gemini", mode="off")
    upstream.answer = http_answer(b'{"totalTokens": 77}')
    answer = await gateway.post("/v1/messages/count_tokens", body)
    assert answer.json == {"input_tokens": 77}
    assert answer.header("x-reflexarc-estimated") is None
    assert upstream.received[0].target == f"/v1/models/{MODEL}:countTokens".encode()

    gateway = await start(dialect="chat", mode="off")
    answer = await gateway.post("/v1/messages/count_tokens", body)
    assert 100 <= answer.json["input_tokens"] <= 120
    assert answer.header("x-reflexarc-estimated") == "input_tokens"
    asked = {"contents": [{"role": "user", "parts": [{"text": "x" * 400}]}]}
    counted = await gateway.post(f"/v1beta/models/{MODEL}:countTokens", asked)
    assert 100 <= counted.json["totalTokens"] <= 120

    gateway = await start(dialect="messages", mode="off")
    upstream.answer = http_answer(b'{"input_tokens": 5}')
    raw = json.dumps(body, indent=3).encode()
    await gateway.post("/v1/messages/count_tokens", raw)
    assert upstream.received[-1].body == raw
    upstream.answer = http_answer(b'{"error": {}}', status="404 Not Found")
    counted = await gateway.post(f"/v1beta/models/{MODEL}:countTokens", asked)
    assert counted.header("x-reflexarc-estimated") == "input_tokens"


async def test_what_another_provider_keeps_cannot_be_asked_of_this_one(
    start: Starter, upstream: Upstream
) -> None:
    gateway = await start(dialect="chat", mode="off")
    answer = await gateway.post(
        "/v1/responses", {"model": MODEL, "input": "hi", "conversation": "conv_1"}
    )
    assert answer.status == 400
    assert answer.json["error"]["param"] == "conversation"
    assert upstream.received == []


async def test_what_cannot_be_said_is_named_in_a_header(start: Starter) -> None:
    gateway = await start(dialect="messages", mode="off")
    body = {**SAID["/v1/chat/completions"], "model": MODEL, "logit_bias": {"5": 1}, "seed": 3}
    answer = await gateway.chat(body)
    told = answer.header("x-reflexarc-warning") or ""
    assert told.split("; ")[0] == "messages cannot express: logit_bias, seed"


async def test_a_stream_that_is_no_event_stream_is_geminis_own(
    start: Starter, upstream: Upstream
) -> None:
    place = f"/v1beta/models/{MODEL}:streamGenerateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    gateway = await start(dialect="chat", mode="off")
    assert (await gateway.post(place, body)).status in (400, 422)
    assert upstream.received == []
    gateway = await start(dialect="gemini", mode="off")
    await gateway.post(place, body)
    assert upstream.received[0].target == f"/v1/models/{MODEL}:streamGenerateContent".encode()
