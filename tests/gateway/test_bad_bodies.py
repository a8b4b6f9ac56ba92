"""Bad input on the chat route: a clear 4xx, or the upstream's judgement; never a 5xx."""

import asyncio
import json
from typing import Any

from reflexarc.gateway.config import Limits


async def test_what_is_not_one_json_object_is_refused_and_not_sent_on(
    start: Any, upstream: Any
) -> None:
    gateway = await start()
    for body in (b"", b"{", b'{"a":}', b"[]", b'"x"', b"3", b'{"a":1} x', b"\xff", b"{'a':1}"):
        answer = await gateway.chat(body)
        assert answer.status == 400, body
        error = answer.json["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "malformed_body")
        assert answer.decision == "none"
    assert upstream.received == []


async def test_what_only_some_readers_accept_is_the_upstreams_to_judge(
    start: Any, upstream: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path), mode="live")
    bodies = [
        b'{"model":"m","model":"n"}',  # a key twice
        b'{"x":' + b"[" * 3000 + b"]" * 3000 + b"}",  # deep
        b'{"x":"\\ud800"}',  # half of a surrogate pair
        b'{"unknown":1}',
        b'{"messages":7,"tools":{}}',
    ]
    for body in bodies:
        answer = await gateway.chat(body)
        assert upstream.received[-1].body == body
        assert answer.decision.startswith("live; escalate; ")
    assert len(upstream.received) == len(bodies)


async def test_a_body_over_the_limit_is_a_413(start: Any, upstream: Any) -> None:
    gateway = await start(limits=Limits(body_bytes=1000))
    at_limit = b'{"a":"' + b"x" * (1000 - 8) + b'"}'
    assert (await gateway.chat(at_limit)).status == 200
    over = await gateway.chat(at_limit + b" ")
    assert over.status == 413
    assert over.json["error"]["code"] == "too_large"
    assert "1000" in over.json["error"]["message"]
    assert len(upstream.received) == 1


async def test_a_body_of_unknown_length_is_measured_as_it_comes(start: Any, upstream: Any) -> None:
    gateway = await start(limits=Limits(body_bytes=1000))

    async def pieces() -> Any:
        for _ in range(20):
            yield b"x" * 100

    async with gateway.client.post(
        gateway.base + "/v1/chat/completions", data=pieces()
    ) as response:
        assert response.status == 413
    assert upstream.received == []


async def test_headers_over_the_limit_are_a_431(start: Any, upstream: Any) -> None:
    gateway = await start(limits=Limits(header_bytes=2000))
    answer = await gateway.chat(b"{}", {"x-long": "y" * 2000})
    assert (answer.status, answer.json["error"]["code"]) == (431, "headers_too_large")
    assert upstream.received == []


async def test_a_header_that_could_not_pass_unchanged_is_refused(start: Any, upstream: Any) -> None:
    gateway = await start()
    host, port = gateway.base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-odd: \xff\r\n"
        b"content-length: 2\r\n\r\n{}"
    )
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert upstream.received == []


async def test_unknown_paths_and_methods_are_told(start: Any) -> None:
    gateway = await start()
    missing = await gateway.post("/v1/embeddings", b"{}")
    assert (missing.status, missing.json["error"]["type"]) == (404, "not_found_error")
    assert (await gateway.get("/v1/chat/completions")).status == 405
    assert (await gateway.get("/api/v1/reflex")).status == 405


async def test_every_answer_carries_its_three_headers(start: Any, desk: Any) -> None:
    gateway = await start()
    answers = [
        await gateway.chat(json.dumps(desk.request()).encode()),
        await gateway.chat(b"{"),
        await gateway.get("/v1/models"),
        await gateway.get("/nowhere"),
        await gateway.get("/healthz"),
        await gateway.get("/readyz"),
        await gateway.get("/metrics"),
        await gateway.post("/api/v1/reflex", b"{}"),
    ]
    for answer in answers:
        assert answer.header("x-request-id")
        assert "dur=" in (answer.header("server-timing") or "")
        assert answer.decision


async def test_a_large_odd_body_is_checked_beside_the_other_requests(
    start: Any, upstream: Any
) -> None:
    gateway = await start(mode="off")
    filler = [{"a": number} for number in range(400_000)]
    odd = json.dumps({"messages": filler, "x": "\ud800"}).encode()
    broken = odd[:-1]
    checking = asyncio.create_task(gateway.chat(broken))
    passing = asyncio.create_task(gateway.chat(odd))
    while not (checking.done() and passing.done()):
        assert (await gateway.get("/healthz")).status == 200
    assert checking.result().status == 400
    assert passing.result().status == 200
    assert [request.body for request in upstream.received] == [odd]
