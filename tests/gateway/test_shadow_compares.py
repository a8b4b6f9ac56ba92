"""Shadow mode compares what System 1 would have done with what System 2 answered, by tool."""

import asyncio
import gzip
import json
from typing import Any

import pytest


def _shadow(outcome: str, tool: str) -> str:
    return f'reflexarc_shadow_total{{outcome="{outcome}",route="/v1",tool="{tool}"}}'


async def test_agreement_and_disagreement_are_counted_by_tool(
    start: Any, upstream: Any, http: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path))
    right = desk.next_call(9000, 4)
    upstream.answer = http.completion(None, (right.name, right.arguments))
    await gateway.chat(desk.request(9000, 4))
    upstream.answer = http.completion(None, (right.name, {"order_id": "W0"}))
    await gateway.chat(desk.request(9000, 4))
    upstream.answer = http.completion("May I ask why?")
    await gateway.chat(desk.request(9000, 4))
    refund = desk.next_call(9000, 6)
    upstream.answer = http.completion(None, (refund.name, refund.arguments))
    await gateway.chat(desk.request(9000, 6))
    found = await gateway.eventually(
        lambda found: sum(v for k, v in found.items() if "reflexarc_shadow_total" in k) == 4
    )
    assert found[_shadow("agree", "get_order")] == 1
    assert found[_shadow("disagree", "get_order")] == 2
    assert found[_shadow("escalate", "refund_order")] == 1


async def test_any_call_of_a_batch_agrees(
    start: Any, upstream: Any, http: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path))
    right = desk.next_call(9001, 4)
    upstream.answer = http.completion(
        None, ("find_customer", {"email": "x"}), (right.name, right.arguments)
    )
    await gateway.chat(desk.request(9001, 4))
    await gateway.eventually(lambda found: found.get(_shadow("agree", "get_order")) == 1)


@pytest.mark.parametrize("packed", [False, True])
async def test_streams_are_compared_too(
    packed: bool, start: Any, upstream: Any, http: Any, desk: Any, reflex_path: Any
) -> None:
    right = desk.next_call(9002, 4)
    text = json.dumps(right.arguments)
    deltas = [
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": right.name}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": text[:5]}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": text[5:]}}]},
    ]
    chunks = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    stream = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
    body = gzip.compress(stream.encode()) if packed else stream.encode()
    encoding = [("content-encoding", "gzip")] if packed else []
    upstream.answer = http.answer(body, ("content-type", "text/event-stream"), *encoding)
    gateway = await start(reflex=str(reflex_path))
    answer = await gateway.chat(desk.request(9002, 4, stream=True))
    assert answer.body == body
    await gateway.eventually(lambda found: found.get(_shadow("agree", "get_order")) == 1)


@pytest.mark.parametrize(
    "body", [b"not json", b"{}", b'{"choices":[]}', b'{"choices":[{"message":{}}]}']
)
async def test_an_answer_that_cannot_be_read_is_no_evidence(
    body: bytes, start: Any, upstream: Any, http: Any, desk: Any, reflex_path: Any
) -> None:
    upstream.answer = http.answer(body)
    gateway = await start(reflex=str(reflex_path))
    assert (await gateway.chat(desk.request())).body == body
    await gateway.eventually(lambda found: found.get(_shadow("unreadable", "")) == 1)


async def test_the_decision_is_told_when_it_comes_before_the_answer(
    start: Any, upstream: Any, desk: Any, reflex_path: Any
) -> None:
    async def slow(_: Any, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        await asyncio.sleep(5)

    upstream.answer = slow
    gateway = await start(reflex=str(reflex_path))
    decision = (await gateway.chat(desk.request())).decision
    assert decision.startswith("shadow; act; get_order; 0.9")


async def test_an_answer_over_the_limit_passes_but_is_not_compared(
    start: Any, upstream: Any, http: Any, desk: Any, reflex_path: Any
) -> None:
    from reflexarc.gateway.config import Limits

    body = b'{"x":"' + b"y" * 5000 + b'"}'
    upstream.answer = http.answer(body)
    gateway = await start(reflex=str(reflex_path), limits=Limits(observed_bytes=1000))
    assert (await gateway.chat(desk.request())).body == body
    await gateway.eventually(
        lambda found: sum(v for k, v in found.items() if "reflexarc_decisions_total{" in k) == 1
    )
    assert not any("reflexarc_shadow_total{" in k for k in await gateway.metrics())


async def test_a_call_whose_arguments_cannot_be_read_is_no_evidence(
    start: Any, upstream: Any, http: Any, desk: Any, reflex_path: Any
) -> None:
    gateway = await start(reflex=str(reflex_path))
    whole: bytes = http.completion(None, ("get_order", {"order_id": "W0"}))
    body = whole.split(b"\r\n\r\n", 1)[1].replace(b'{\\"order_id', b'{{\\"order_id')
    assert body not in whole
    upstream.answer = http.answer(body)
    await gateway.chat(desk.request(9005, 4))
    found = await gateway.eventually(
        lambda found: any("reflexarc_shadow_total" in name for name in found)
    )
    assert found[_shadow("unreadable", "")] == 1
