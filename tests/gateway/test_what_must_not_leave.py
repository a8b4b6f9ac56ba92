"""Where a request may go: local alone, and into no private network that nobody named."""

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


async def test_a_misspelt_header_is_refused(start: Starter, two: Two) -> None:
    running = await pooled(start, two)
    for headers in ({"x-reflexarc-local": "yes"}, {"x-reflexarc-tier": "fast"}):
        assert (await asked(running, "chat", stream=False, headers=headers))[0] == 400
    assert not two[0].received
