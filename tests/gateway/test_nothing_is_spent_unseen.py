"""What is kept back covers what can be spent, and what is spent stands in the book."""

import json
from pathlib import Path
from typing import Any

import pytest

from reflexarc.gateway.config import Route
from reflexarc.gateway.config_pool import AccountsConfig, ModelConfig, ProviderConfig, Served

from .conftest import Starter
from .pools import CHEAP, Two, ask, asked, pool_of, pooled
from .test_accounts_bind_requests import Maker, bearer, key, with_keys
from .test_how_attempts_end import charges
from .upstream import MODEL, Upstream, http_answer

__all__ = ["key"]
CHAT, MESSAGES, GEMINI = (
    "/v1/chat/completions", "/v1/messages", "/v1beta/models/agent:generateContent"
)  # fmt: skip


@pytest.mark.parametrize(
    ("client", "path", "more", "covered"),
    [
        ("chat", CHAT, {"max_tokens": 100}, True),
        ("chat", CHAT, {"max_tokens": 100, "n": 8}, False),
        ("chat", CHAT, {"n": 8}, False),
        ("chat", CHAT, {"max_completion_tokens": 1, "max_tokens": 1000}, False),
        ("messages", MESSAGES, {"max_tokens": 1000, "max_completion_tokens": 1}, False),
        ("gemini", GEMINI, {"generationConfig": {"maxOutputTokens": 100}}, True),
        ("gemini", GEMINI, {"generationConfig": {"maxOutputTokens": 1000.0}}, False),
        ("gemini", GEMINI,
         {"generationConfig": {"maxOutputTokens": 100, "candidateCount": 8}}, False),
    ],
)  # fmt: skip
async def test_as_much_is_kept_back_as_all_answers_together_may_cost(
    start: Starter, two: Two, key: Maker, client: str, path: str, more: Any, covered: bool
) -> None:
    running = await with_keys(start, two)
    text = key(budgets=["0.01usd"])  # 500 tokens of output at 20 dollars a million
    body = {**ask(client, stream=False), **more}
    answer = await running.post(path, body, bearer(text, **{"anthropic-version": "2023-06-01"}))
    assert (answer.status == 200) is covered
    assert bool(two[0].received or two[1].received) is covered


async def test_a_route_that_records_nothing_charges_all_the_same(
    start: Starter, two: Two, state_dir: Path
) -> None:
    route = Route(upstream=two[0].url, mode="off", record="none", price=CHEAP, api_key_env="KEY_a")
    running = await start(routes=(route,), environment={"KEY_a": "one"})
    status, _, _ = await asked(running, "chat", stream=True, model="faulty-1")
    assert status == 200
    [row] = await charges(state_dir, 1)
    assert row[1:5] == ("answered", 100, 20, 140)


@pytest.mark.parametrize(("tier", "micro_usd"), [("priority", 4_250), ("default", 2_125)])
async def test_a_service_tier_that_the_answer_tells_is_what_it_costs(
    start: Starter, two: Two, upstream: Upstream, state_dir: Path, tier: str, micro_usd: int
) -> None:
    told = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000},
        "service_tier": tier,
    }  # fmt: skip
    upstream.answer = http_answer(json.dumps(told).encode())
    provider = ProviderConfig(url=upstream.url, key_env="KEY_a", private=True, charged_as="openai")
    pool = {
        **pool_of(two), "provider": {"a": provider},
        "model": {"agent": ModelConfig(standard=(Served("a", "gpt-5.1"),))},
    }  # fmt: skip
    running = await pooled(start, two, pool=pool)
    body = {**ask("chat", stream=False), "service_tier": tier}
    assert (await running.chat(body)).status == 200
    [row] = await charges(state_dir, 1)
    assert row[1:5] == ("answered", 900, 100, micro_usd)


async def test_what_the_client_asks_for_in_a_dearer_service_tier_is_kept_back_at_its_price(
    start: Starter, two: Two, key: Maker
) -> None:
    provider = ProviderConfig(
        url=two[0].url, dialect="chat", key_env="KEY_a", private=True, charged_as="openai"
    )
    pool = {
        **pool_of(two), "provider": {"a": provider},
        "model": {"agent": ModelConfig(standard=(Served("a", "gpt-5.1"),))},
        "accounts": AccountsConfig(keys="required"),
    }  # fmt: skip
    running = await pooled(start, two, pool=pool)
    body = {**ask("chat", stream=False), "max_tokens": 1000, "model": "agent"}
    sent = bearer(key(budgets=["0.015usd"]))
    dear = await running.post(CHAT, {**body, "service_tier": "priority"}, sent)
    assert dear.status == 402
    assert (await running.post(CHAT, body, sent)).status != 402
