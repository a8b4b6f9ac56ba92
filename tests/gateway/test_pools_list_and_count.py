"""Lists of models and counts of tokens on pooled routes."""

from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served

from .asking import client_of
from .conftest import Starter
from .pools import Two, asked, pool_of, pooled


async def test_models_and_aliases_are_listed_in_every_clients_form(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two)
    listed = (await running.get("/v1/models")).json
    assert [one["id"] for one in listed["data"]] == ["agent", "gpt-4o"]
    messages = (await running.get("/v1/models", {"anthropic-version": "2023-06-01"})).json
    assert [one["id"] for one in messages["data"]] == ["agent", "gpt-4o"]
    gemini = (await running.get("/v1beta/models")).json
    assert [one["name"] for one in gemini["models"]] == ["models/agent", "models/gpt-4o"]
    assert (await running.get("/v1/models/agent")).json["id"] == "agent"
    assert (await running.get("/v1/models/none")).status == 404
    assert not two[0].received


async def test_a_route_lists_what_it_offers_alone(start: Starter, two: Two) -> None:
    running = await pooled(start, two, route={"models": ("gpt-4o",)})
    assert [one["id"] for one in (await running.get("/v1/models")).json["data"]] == ["gpt-4o"]
    assert (await asked(running, "chat", stream=False, model="gpt-4o"))[0] == 200
    assert (await asked(running, "chat", stream=False, model="agent"))[0] == 404


async def test_a_deployment_that_counts_is_asked_whatever_its_place(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two, ("chat", "messages"))
    body = client_of("messages").ask("hello", stream=False, more=[], think=False)
    body["model"] = "agent"
    answer = await running.post("/v1/messages/count_tokens", body)
    assert answer.status == 200
    assert answer.header("x-reflexarc-estimated") is None
    assert two[1].received[-1].path.endswith("/messages/count_tokens")
    assert two[1].received[-1].json["model"] == "faulty-2"


async def test_else_it_is_an_estimate_that_says_so_and_learns(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    body = client_of("messages").ask("hello " * 100, stream=False, more=[], think=False)
    body["model"] = "agent"
    before = await running.post("/v1/messages/count_tokens", body)
    assert before.header("x-reflexarc-estimated") == "input_tokens"
    for _ in range(20):
        running.gateway.system2.ratios.learn("a/faulty-1", 2000, 1000)
    after = await running.post("/v1/messages/count_tokens", body)
    assert after.json["input_tokens"] > 1.5 * before.json["input_tokens"]


async def test_a_kind_with_a_vocabulary_is_asked_where_it_counts(start: Starter, two: Two) -> None:
    """An older server of the kind, which has no such path: then it is an estimate after all."""
    pool = pool_of(two)
    pool["provider"]["a"] = ProviderConfig(kind="llamacpp", url=two[0].url, dialect="chat")
    pool["model"] = {"agent": ModelConfig(standard=(Served("a", "faulty-1"),))}
    running = await pooled(start, two, pool=pool)
    body = client_of("messages").ask("hello", stream=False, more=[], think=False)
    body["model"] = "agent"
    answer = await running.post("/v1/messages/count_tokens", body)
    assert answer.status == 200
    assert two[0].received[-1].path.endswith("/chat/completions/input_tokens")
    assert answer.header("x-reflexarc-estimated") == "input_tokens"
