"""Virtual keys: who may ask, for what, how much; and what it cost in the end."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reflexarc.accounts.book import Book
from reflexarc.accounts.budgets import budget_from
from reflexarc.accounts.database import FILE
from reflexarc.accounts.keyring import Keyring
from reflexarc.accounts.keys import VirtualKey
from reflexarc.accounts.spending import spending
from reflexarc.gateway.config_pool import AccountsConfig
from reflexarc.store.place import make_private, secret

from .conftest import Running, Starter
from .pools import Two, asked, pooled

Maker = Callable[..., str]
# 100 tokens of input at 1 dollar a million, 20 of output at 2.
COSTS = 140


def book() -> Book:
    directory = Path(os.environ["REFLEXARC_STATE"])
    make_private(directory)
    return Book.open(directory / FILE, time.time)


@pytest.fixture
def key() -> Maker:
    """Makes a key and gives its secret."""

    def made(name: str = "k", **more: Any) -> str:
        opened = book()
        directory = Path(os.environ["REFLEXARC_STATE"])
        ring = Keyring(opened.database, secret(directory), time.time)
        budgets = tuple(budget_from(one) for one in more.pop("budgets", ()))
        wanted = VirtualKey("", name, more.pop("tenant", ""), budgets=budgets, **more)
        _, text = ring.create(wanted)
        opened.close()
        return text

    return made


async def with_keys(start: Starter, two: Two, keys: str = "required", **more: Any) -> Running:
    accounts = AccountsConfig(keys=keys, max_output_tokens=100)  # type: ignore[arg-type]
    return await pooled(start, two, pool={"accounts": accounts}, **more)


def bearer(text: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}", **more}


async def settled(wanted: Callable[[Book], bool]) -> Book:
    opened = book()
    for _ in range(200):
        if wanted(opened):
            return opened
        await asyncio.sleep(0.02)
    raise AssertionError(f"{opened.reserved()} micro-dollars are still reserved")


async def test_without_a_key_of_ours_nothing_passes(start: Starter, two: Two, key: Maker) -> None:
    running = await with_keys(start, two)
    for client in ("chat", "messages", "gemini", "responses"):
        status, _, _ = await asked(running, client, stream=False)
        assert status == 401
    wrong = "rx-" + "A" * 43
    status, _, said = await asked(running, "chat", stream=False, headers=bearer(wrong))
    assert status == 401
    assert wrong not in str(said)
    status, _, _ = await asked(running, "chat", stream=False, headers=bearer(key()))
    assert status == 200
    assert len(two[0].received) == 1


async def test_a_virtual_key_goes_to_no_upstream(start: Starter, two: Two, key: Maker) -> None:
    text = key()
    running = await with_keys(start, two, "optional")
    await asked(running, "chat", stream=True, headers=bearer(text))
    (received,) = two[0].received
    assert text not in str(received.headers)
    assert received.headers["authorization"] == "Bearer one"


@pytest.mark.parametrize("stream", [False, True])
async def test_what_it_cost_stands_in_the_book(
    start: Starter, two: Two, key: Maker, stream: bool
) -> None:
    running = await with_keys(start, two)
    await asked(running, "chat", stream=stream, headers=bearer(key(budgets=["1usd"])))
    opened = await settled(
        lambda one: bool(spending(one.database, ("key",))) and not one.reserved()
    )
    (spent,) = spending(opened.database, ("key",))
    assert spent.micro_usd == COSTS


async def test_a_budget_that_does_not_cover_a_request_lets_nothing_out(
    start: Starter, two: Two, key: Maker
) -> None:
    running = await with_keys(start, two)
    text = key(budgets=["0.0001usd"])
    status, _, said = await asked(running, "chat", stream=False, headers=bearer(text))
    assert status == 402
    assert "budget" in said["error"]["message"]
    assert not two[0].received
    assert not book().reserved()


async def test_many_at_once_get_just_what_the_budget_covers(
    start: Starter, two: Two, key: Maker
) -> None:
    running = await with_keys(start, two)
    text = key(budgets=["0.02usd"])
    done = await asyncio.gather(
        *(asked(running, "chat", stream=False, headers=bearer(text)) for _ in range(40))
    )
    statuses = [status for status, _, _ in done]
    assert set(statuses) <= {200, 402}
    assert 200 in statuses
    opened = await settled(lambda one: not one.reserved())
    (spent,) = spending(opened.database, ("key",))
    assert spent.micro_usd == statuses.count(200) * COSTS <= 20_000


async def test_limits_of_rate_say_when_to_come_back(start: Starter, two: Two, key: Maker) -> None:
    running = await with_keys(start, two)
    text = key(requests_per_minute=1)
    assert (await asked(running, "chat", stream=False, headers=bearer(text)))[0] == 200
    status, headers, _ = await asked(running, "chat", stream=False, headers=bearer(text))
    assert status == 429
    assert 0 < int(headers["retry-after"]) <= 60


async def test_a_key_may_use_its_models_and_tiers_alone(
    start: Starter, two: Two, key: Maker
) -> None:
    running = await with_keys(start, two)
    other = key("other", models=("nothing",))
    status, _, _ = await asked(running, "chat", stream=False, headers=bearer(other))
    assert status == 403
    listed = await running.get("/v1/models", bearer(other))
    assert listed.json["data"] == []
    batch = key("batch", tiers=("batch",), default_tier="batch")
    status, headers, _ = await asked(running, "chat", stream=False, headers=bearer(batch))
    assert (status, headers["x-reflexarc-tier"]) == (200, "batch")
    told = bearer(batch, **{"x-reflexarc-tier": "interactive"})
    assert (await asked(running, "chat", stream=False, headers=told))[0] == 403


async def test_two_keys_of_one_tenant_go_on_from_each_others_answers_and_no_other_does(
    start: Starter, two: Two, key: Maker
) -> None:
    running = await with_keys(start, two)
    first, second = key("one", tenant="team"), key("two", tenant="team")
    stranger = key("three", tenant="others")
    body = {"model": "agent", "input": "hello"}
    answer = await running.post("/v1/responses", body, bearer(first))
    again = {**body, "previous_response_id": answer.json["id"]}
    assert (await running.post("/v1/responses", again, bearer(second))).status == 200
    assert (await running.post("/v1/responses", again, bearer(stranger))).status == 400
    assert (await running.get(f"/v1/responses/{answer.json['id']}", bearer(stranger))).status == 404


async def test_a_key_without_a_routes_reflex_is_not_shown_it(
    start: Starter, two: Two, key: Maker, reflex_path: Path
) -> None:
    route = {"mode": "shadow", "reflex": str(reflex_path)}
    running = await with_keys(start, two, route=route)
    with_it, without = key("with", reflexes=("/v1",)), key("without", reflexes=())
    _, headers, _ = await asked(running, "chat", stream=False, headers=bearer(with_it))
    assert "not_allowed" not in headers["x-reflexarc-decision"]
    _, headers, _ = await asked(running, "chat", stream=False, headers=bearer(without))
    assert headers["x-reflexarc-decision"] == "shadow; escalate; not_allowed"
