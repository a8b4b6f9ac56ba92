"""Batch requests that nobody waits for: left, shown, worked off, kept through a restart."""

import asyncio
import os
from pathlib import Path
from typing import Any

from reflexarc.gateway.config_pool import ProviderConfig, QueueConfig

from .conftest import Response, Running, Starter
from .pools import Two, ask, pool_of, pooled
from .test_accounts_bind_requests import Maker, bearer, key, with_keys

__all__ = ["key"]  # a fixture
LEFT = {"prefer": "wait=5, respond-async", "x-reflexarc-tier": "batch"}
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/agent:generateContent",
}


async def leave(
    running: Running, client: str = "chat", words: str = "hello", **headers: str
) -> Response:
    sent = {"authorization": "Bearer mine", **LEFT, **headers}
    return await running.post(PATHS[client], ask(client, words, stream=False), sent)


async def get(running: Running, left: Response, **headers: str) -> Response:
    sent = {"authorization": "Bearer mine", **headers}
    return await running.get(left.json["url"], sent)


async def done(running: Running, left: Response, **headers: str) -> Response:
    for _ in range(300):
        answer = await get(running, left, **headers)
        if answer.status != 202:
            return answer
        await asyncio.sleep(0.02)
    raise AssertionError("it was never answered")


async def test_an_answer_is_there_later_in_the_clients_dialect(start: Starter, two: Two) -> None:
    running = await pooled(start, two, ("chat", "messages"))
    texts: dict[str, Any] = {}
    for client in PATHS:
        left = await leave(running, client)
        assert left.status == 202
        assert left.header("location") == left.json["url"]
        assert left.header("preference-applied") == "respond-async"
        answer = await done(running, left)
        assert answer.status == 200
        assert b"Hello from the upstream." in answer.body
        texts[client] = answer.json
    for client, member in (("chat", "choices"), ("messages", "content"), ("gemini", "candidates")):
        assert member in texts[client]


async def test_it_shows_its_place_until_it_is_taken_and_can_be_cancelled(
    start: Starter, two: Two
) -> None:
    pool = {**pool_of(two, max_parallel=1), "queue": QueueConfig(parallel=1)}
    running = await pooled(start, two, pool=pool)
    two[0].usual = two[1].usual = "slow=30000"
    left = [await leave(running) for _ in range(4)]
    await asyncio.sleep(0.2)
    states = [(await get(running, one)).json for one in left]
    assert [state["status"] for state in states] == ["running", "waiting", "waiting", "waiting"]
    assert [state["place"] for state in states] == [None, 0, 1, 2]
    cancelled = await running.client.delete(
        running.base + left[1].json["url"], headers={"authorization": "Bearer mine"}
    )
    assert cancelled.status == 200
    assert (await get(running, left[2])).json["place"] == 0
    assert (await get(running, left[1])).status == 410
    listed = await running.get("/v1/queued", {"authorization": "Bearer mine"})
    assert len(listed.json["data"]) == 4


async def test_nobody_sees_anothers(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    left = await leave(running)
    assert (await get(running, left, authorization="Bearer other")).status == 404
    listed = await running.get("/v1/queued", {"authorization": "Bearer other"})
    assert listed.json["data"] == []


async def test_what_cannot_wait_is_refused_and_says_what_to_do(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    told = await leave(running, **{"x-reflexarc-tier": "standard"})
    assert (told.status, "x-reflexarc-tier: batch" in told.json["error"]["message"]) == (422, True)
    streamed = {**ask("chat", stream=True), "stream": True}
    sent = {"authorization": "Bearer mine", **LEFT}
    assert (await running.chat(streamed, sent)).status == 422
    pool = pool_of(two)
    pool["provider"]["a"] = ProviderConfig(url=two[0].url, private=True)
    passing = await pooled(start, two, pool=pool)
    told = await leave(passing)
    assert (told.status, "no client's key is kept" in told.json["error"]["message"]) == (422, True)


async def test_a_full_queue_says_when_to_come_back(start: Starter, two: Two) -> None:
    pool = {**pool_of(two), "queue": QueueConfig(parallel=1, max_entries=2)}
    running = await pooled(start, two, pool=pool)
    two[0].usual = two[1].usual = "slow=30000"
    statuses = [(await leave(running)).status for _ in range(3)]
    assert 429 in statuses
    full = await leave(running)
    assert int(full.header("retry-after") or 0) >= 1


async def test_what_one_gateway_took_in_another_answers_and_no_key_is_in_the_file(
    start: Starter, two: Two
) -> None:
    first = await pooled(start, two)
    two[0].usual = two[1].usual = "slow=30000"
    left = await leave(first, words="remember me")
    await asyncio.sleep(0.1)
    await first.gateway._queued.close()  # as at its end
    two[0].usual = two[1].usual = ""
    second = await pooled(start, two)
    answer = await done(second, left)
    assert answer.status == 200
    data = b"".join(
        path.read_bytes() for path in Path(os.environ["REFLEXARC_STATE"]).glob("queue.db*")
    )
    assert b"agent" in data
    for secret in (b"Bearer", b"mine", b"one-secret"):
        assert secret not in data


async def test_a_failure_that_may_pass_is_tried_again_and_one_that_does_not_is_the_answer(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two)
    two[0].script.append("error=429 retry=0.1")
    two[1].script.append("error=429 retry=0.1")
    assert (await done(running, await leave(running))).status == 200
    two[0].usual = two[1].usual = "error=400"
    assert (await done(running, await leave(running))).status == 400


async def test_its_keys_budget_pays_and_a_key_that_is_gone_pays_nothing(
    start: Starter, two: Two, key: Maker
) -> None:
    running = await with_keys(start, two)
    text = key(budgets=["0.0001usd"])
    left = await leave(running, **bearer(text))
    answer = await done(running, left, **bearer(text))
    assert answer.status == 402
    assert not two[0].received
