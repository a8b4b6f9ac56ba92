"""Request and response bytes, and the headers that travel with them, pass unchanged."""

import asyncio
import gzip
import json
from typing import Any

import yarl

# Key order, white space, escapes and numbers that a re-serialisation would change.
ODD_BODY = (
    b'{ "tools":[],"model" :"m",\n\t"messages":[{"role":"user","content":"\\u00e9\\/ 1.0e3"}],'
    b'"temperature":1.0, "x":1E2}'
)


async def test_a_request_arrives_byte_for_byte(start: Any, upstream: Any) -> None:
    gateway = await start()
    await gateway.chat(ODD_BODY)
    assert upstream.received[0].body == ODD_BODY
    assert upstream.received[0].target == b"/v1/chat/completions"


async def test_an_answer_arrives_byte_for_byte(start: Any, upstream: Any, http: Any) -> None:
    body = b'{ "choices" : [] ,"\\u0041":1.50}\n'
    upstream.answer = http.answer(body, status="418 I'm a teapot")
    answer = await (await start()).chat(ODD_BODY)
    assert (answer.status, answer.body) == (418, body)


async def test_a_large_body_arrives_whole(start: Any, upstream: Any) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "é" * 400_000}]})
    await (await start()).chat(body.encode())
    assert upstream.received[0].body == body.encode()


async def test_the_clients_headers_travel_but_for_those_of_its_connection(
    start: Any, upstream: Any
) -> None:
    gateway = await start()
    await gateway.chat(
        ODD_BODY,
        {
            "authorization": "Bearer sk-client",
            "openai-organization": "org-1",
            "x-session-affinity": "abc",
            "te": "trailers",
            "connection": "keep-alive, x-private",
            "x-private": "1",
        },
    )
    seen = upstream.received[0]
    assert seen.header(b"authorization") == b"Bearer sk-client"
    assert seen.header(b"openai-organization") == b"org-1"
    assert seen.header(b"x-session-affinity") == b"abc"
    assert seen.header(b"te") is None
    assert seen.header(b"x-private") is None
    assert seen.header(b"host") == upstream.url.split("/")[2].encode()


async def test_the_upstreams_headers_travel_in_order(start: Any, upstream: Any, http: Any) -> None:
    upstream.answer = http.answer(
        b"{}", ("x-ratelimit-remaining-tokens", "7"), ("retry-after", "3"), ("X-Odd", "a, b")
    )
    answer = await (await start()).chat(ODD_BODY)
    names = [name.lower() for name, _ in answer.headers]
    assert answer.header("x-ratelimit-remaining-tokens") == "7"
    assert answer.header("retry-after") == "3"
    assert answer.header("x-odd") == "a, b"
    assert names.index(b"x-ratelimit-remaining-tokens") < names.index(b"retry-after")


async def test_compressed_answers_stay_compressed(start: Any, upstream: Any, http: Any) -> None:
    packed = gzip.compress(b'{"choices":[]}')
    upstream.answer = http.answer(packed, ("content-encoding", "gzip"))
    answer = await (await start()).chat(ODD_BODY, {"accept-encoding": "gzip"})
    assert answer.body == packed
    assert answer.header("content-encoding") == "gzip"
    assert upstream.received[0].header(b"accept-encoding") == b"gzip"


async def test_compressed_requests_pass_as_they_are(
    start: Any, upstream: Any, reflex_path: Any
) -> None:
    packed = gzip.compress(ODD_BODY)
    gateway = await start(reflex=str(reflex_path), mode="live")
    answer = await gateway.chat(packed, {"content-encoding": "gzip"})
    assert upstream.received[0].body == packed
    assert answer.decision == "live; escalate; encoded_body"


async def test_every_piece_of_a_stream_is_passed_on_at_once(start: Any, upstream: Any) -> None:
    go_on = asyncio.Event()
    pieces = [b'data: {"a":1}\n', b"\n: ping\n\nda", b"ta: [DONE]\n\n"]

    async def answer(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await go_on.wait()
            go_on.clear()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(5)

    upstream.answer = answer
    gateway = await start()
    async with gateway.client.post(
        gateway.base + "/v1/chat/completions", data=b'{"stream":true}'
    ) as response:
        for piece in pieces:  # the next piece is written only once this one has come through
            assert await asyncio.wait_for(response.content.readany(), 5) == piece
            go_on.set()
        assert await asyncio.wait_for(response.content.read(), 5) == b""


async def test_a_query_travels_as_written(start: Any, upstream: Any) -> None:
    gateway = await start()
    url = yarl.URL(f"{gateway.base}/v1/chat/completions?api-version=2024%2D10&x=a+b", encoded=True)
    async with gateway.client.post(url, data=ODD_BODY):
        pass
    assert upstream.received[0].target == b"/v1/chat/completions?api-version=2024%2D10&x=a+b"


async def test_models_are_the_upstreams(start: Any, upstream: Any, http: Any) -> None:
    upstream.answer = http.answer(b'{"object":"list","data":[]}')
    answer = await (await start()).get("/v1/models", {"authorization": "Bearer sk-client"})
    assert answer.body == b'{"object":"list","data":[]}'
    assert upstream.received[0].method == "GET"
    assert upstream.received[0].header(b"authorization") == b"Bearer sk-client"


async def test_redirects_are_the_clients_business(start: Any, upstream: Any, http: Any) -> None:
    upstream.answer = http.answer(b"", ("location", "http://192.0.2.1/"), status="307 Elsewhere")
    gateway = await start()
    async with gateway.client.post(
        gateway.base + "/v1/chat/completions", data=b"{}", allow_redirects=False
    ) as response:
        assert response.status == 307
        assert response.headers["location"] == "http://192.0.2.1/"
    assert len(upstream.received) == 1


async def test_the_clients_key_is_replaced_where_configured(start: Any, upstream: Any) -> None:
    gateway = await start(api_key_env="DESK_KEY", environment={"DESK_KEY": "sk-ours"})
    await gateway.chat(ODD_BODY, {"authorization": "Bearer sk-client"})
    assert upstream.received[0].header(b"authorization") == b"Bearer sk-ours"
    assert sum(name.lower() == b"authorization" for name, _ in upstream.received[0].headers) == 1


async def test_the_upstreams_request_id_wins(start: Any, upstream: Any, http: Any) -> None:
    gateway = await start()
    assert (await gateway.chat(ODD_BODY, {"x-request-id": "mine-1"})).header(
        "x-request-id"
    ) == "mine-1"
    assert (await gateway.chat(ODD_BODY)).header("x-request-id").startswith("req_")
    upstream.answer = http.answer(b"{}", ("x-request-id", "up-9"))
    assert (await gateway.chat(ODD_BODY)).header("x-request-id") == "up-9"


async def test_one_model_is_asked_for_at_the_upstream(start: Any, upstream: Any) -> None:
    gateway = await start()
    for name in ("gpt", "meta/llama-3%2F8b"):
        assert (await gateway.get(f"/v1/models/{name}?a=1")).status == 200
        assert upstream.received[-1].target == f"/v1/models/{name}?a=1".encode()
    assert (await gateway.post("/v1/models/gpt", b"{}")).status == 405
    for name in ("", "%2e%2e/files", "a/%2E%2E/b"):
        url = yarl.URL(f"{gateway.base}/v1/models/{name}", encoded=True)
        async with gateway.client.get(url) as answer:
            assert answer.status == 404
    assert len(upstream.received) == 2
