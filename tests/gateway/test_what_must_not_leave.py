"""Where a request may go: local alone, and into no private network that nobody named."""

from types import SimpleNamespace

import aiohttp.resolver
import pytest

from reflexarc.gateway.config_pool import ModelConfig, ProviderConfig, Served
from reflexarc.steps.errors import ConfigError

from .conftest import Starter
from .pools import CHEAP, DEAR, Two, asked, pool_of, pooled

LOCAL = {"x-reflexarc-local": "only"}


async def test_local_only_goes_to_local_deployments_whatever_the_tier_and_fails_there(
    start: Starter, two: Two
) -> None:
    pool = pool_of(two)
    provider = pool["provider"]["b"]
    pool["provider"]["b"] = ProviderConfig(
        kind="vllm", url=provider.url, dialect="chat", key_env="KEY_b"
    )
    pool["model"] = {
        "agent": ModelConfig(
            standard=(Served("a", "faulty-1", price=CHEAP),),
            batch=(Served("b", "faulty-2", price=DEAR),),
        )
    }
    running = await pooled(start, two, pool=pool)
    status, headers, _ = await asked(running, "chat", stream=True, headers=LOCAL)
    assert (status, headers["x-reflexarc-upstream"]) == (200, "b/faulty-2")
    two[1].usual = "error=503"
    status, _, _ = await asked(running, "chat", stream=True, headers=LOCAL)
    assert status == 503
    assert not two[0].received


async def test_without_a_local_deployment_it_is_refused_before_anything_is_sent(
    start: Starter, two: Two
) -> None:
    running = await pooled(start, two, route={"local_only": True})
    status, _, said = await asked(running, "chat", stream=False)
    assert status == 403
    assert "local" in said["error"]["message"]
    assert not two[0].received
    assert not two[1].received


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://localhost:9/v1", "http://[::1]/"])
async def test_a_private_address_is_refused_unless_it_is_meant(
    start: Starter, two: Two, url: str
) -> None:
    pool = {
        **pool_of(two),
        "provider": {"a": ProviderConfig(url=url), "b": ProviderConfig(url=url)},
    }
    with pytest.raises(ConfigError, match="private = true"):
        await pooled(start, two, pool=pool)


async def test_a_name_that_leads_into_a_private_network_is_not_followed(
    start: Starter, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = two[0].port

    async def resolve(self: object, host: str, *_: object, **__: object) -> list[dict[str, object]]:
        del self
        return [
            {"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 6,
             "flags": 0}
        ]  # fmt: skip

    monkeypatch.setattr(aiohttp.resolver.ThreadedResolver, "resolve", resolve)
    monkeypatch.setattr(aiohttp.resolver.AsyncResolver, "resolve", resolve, raising=False)
    pool = pool_of(two)
    pool["provider"]["a"] = ProviderConfig(
        url=f"https://models.example.com:{port}/v1", key_env="KEY_a"
    )
    running = await pooled(start, two, pool=pool)
    status, headers, _ = await asked(running, "chat", stream=False)
    assert (status, headers["x-reflexarc-upstream"]) == (200, "b/faulty-2")
    assert not two[0].received
    two[1].usual = "error=503"
    pool["model"] = {"agent": ModelConfig(standard=(Served("a", "faulty-1"),))}
    alone = await pooled(start, two, pool=pool)
    _, _, said = await asked(alone, "chat", stream=False)
    assert "private = true" in said["error"]["message"]


async def test_what_is_local_by_name_is_not_followed_out_into_the_world(
    start: Starter, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[object] = []

    async def resolve(self: object, host: str, *_: object, **__: object) -> list[dict[str, object]]:
        del self
        return [
            {"hostname": host, "host": "8.8.8.8", "port": 443, "family": 2, "proto": 6, "flags": 0}
        ]

    def socket_of(*_: object, **__: object) -> None:
        connected.append(1)
        raise OSError("no test connects to the world")

    monkeypatch.setattr(aiohttp.resolver.ThreadedResolver, "resolve", resolve)
    monkeypatch.setattr(aiohttp.resolver.AsyncResolver, "resolve", resolve, raising=False)
    pool = pool_of(two)
    pool["provider"]["b"] = ProviderConfig(kind="vllm", url="https://gpu.example.com/v1")
    running = await pooled(start, two, pool=pool)
    no_sockets = SimpleNamespace(socket=socket_of)
    monkeypatch.setattr("reflexarc.upstream.transport.socket", no_sockets)
    status, _, said = await asked(running, "chat", stream=False, headers=LOCAL)
    assert status == 502
    assert "out into the world" in said["error"]["message"]
    assert not connected


async def test_a_public_address_is_not_local_though_its_kind_usually_is(
    start: Starter, two: Two
) -> None:
    pool = pool_of(two)
    pool["provider"]["b"] = ProviderConfig(kind="vllm", url="https://8.8.8.8/v1")
    with pytest.raises(ConfigError, match="set local = false"):
        await pooled(start, two, pool=pool)


async def test_a_count_of_what_must_not_leave_leaves_no_more_than_the_request(
    start: Starter, two: Two
) -> None:
    pool = pool_of(two, ("messages", "chat"))
    pool["provider"]["b"] = ProviderConfig(kind="vllm", url=two[1].url, dialect="chat")
    running = await pooled(start, two, pool=pool)
    body = {"model": "agent", "messages": [{"role": "user", "content": "secret"}]}
    counted = await running.post("/v1/messages/count_tokens", body, LOCAL)
    assert counted.status == 200
    assert not two[0].received
    await running.post("/v1/messages/count_tokens", body)
    assert two[0].received


async def test_a_misspelt_header_is_refused(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    for headers in ({"x-reflexarc-local": "yes"}, {"x-reflexarc-tier": "fast"}):
        assert (await asked(running, "chat", stream=False, headers=headers))[0] == 400
    assert not two[0].received
