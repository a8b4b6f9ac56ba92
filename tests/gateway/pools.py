"""Pooled routes over fault upstreams, for tests: a gateway whose model `agent` two serve."""

from typing import Any

from reflexarc.gateway.config import Route
from reflexarc.gateway.config_pool import (
    ModelConfig,
    Price,
    ProviderConfig,
    Served,
    TierConfig,
    TiersConfig,
)
from reflexarc.sim.faulty import FaultyUpstream

from .asking import client_of
from .conftest import Running, Starter

CHEAP = Price(input=1.0, output=2.0)
DEAR = Price(input=10.0, output=20.0)
Two = tuple[FaultyUpstream, FaultyUpstream]


def base_of(faulty: FaultyUpstream, dialect: str) -> str:
    return faulty.gemini_url if dialect == "gemini" else faulty.url


def pool_of(
    two: Two,
    dialects: tuple[str, str] = ("chat", "chat"),
    tier: TierConfig | None = None,
    **provider: Any,
) -> dict[str, Any]:
    """The parts of a configuration. Keys are those of the variables `KEY_a` and `KEY_b`."""
    providers = {
        name: ProviderConfig(
            url=base_of(faulty, spoken),
            key_env=f"KEY_{name}",
            dialect=spoken,
            private=True,
            **provider,
        )
        for name, faulty, spoken in zip(("a", "b"), two, dialects, strict=True)
    }
    served = (Served("a", "faulty-1", price=CHEAP), Served("b", "faulty-2", price=DEAR))
    tiers = TiersConfig() if tier is None else TiersConfig(tier, tier, tier)
    return {
        "provider": providers,
        "model": {"agent": ModelConfig(standard=served)},
        "alias": {"gpt-4o": "agent"},
        "tier": tiers,
    }


async def pooled(
    start: Starter,
    two: Two,
    dialects: tuple[str, str] = ("chat", "chat"),
    tier: TierConfig | None = None,
    pool: dict[str, Any] | None = None,
    route: dict[str, Any] | None = None,
    **more: Any,
) -> Running:
    """A gateway with the model `agent`, served by the first, and then by the second."""
    return await start(
        routes=(Route(**{"upstream": "models", "mode": "off", **(route or {})}),),
        environment={"KEY_a": "one", "KEY_b": "two"},
        pool={**pool_of(two, dialects, tier), **(pool or {})},
        **more,
    )


def ask(client: str, words: str = "hello", *, stream: bool, model: str = "agent") -> Any:
    body = client_of(client).ask(words, stream=stream, more=[], think=False)
    if client != "gemini":
        body["model"] = model
    return body


async def asked(
    running: Running,
    client: str,
    words: str = "hello",
    *,
    stream: bool,
    model: str = "agent",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, str], Any]:
    """Status, headers, and the answer as seen or, of an error, its body."""
    spoken = client_of(client)
    path = spoken.path(stream=stream).replace("faulty-1", model)
    sent = {"authorization": "Bearer mine", "anthropic-version": "2023-06-01", **(headers or {})}
    answer = await running.post(path, ask(client, words, stream=stream, model=model), sent)
    given = {name.decode().lower(): value.decode() for name, value in answer.headers}
    if answer.status >= 400:
        return answer.status, given, answer.json
    seen = spoken.gathered(answer.body) if stream else spoken.whole(answer.json)
    return answer.status, given, seen
