"""What is known of kinds of providers fits what the gateway can speak and send."""

from pathlib import Path

import anthropic
import cerebras.cloud.sdk
import groq
import openai
import pytest
import yarl

from reflexarc.upstream import KEY_NAMES
from reflexarc.upstream.providers import KINDS, ProviderKind
from reflexarc.wire.dialects import NAMES


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    return KINDS[request.param]


def test_every_kind_that_the_gateway_is_meant_for_is_known() -> None:
    assert set(KINDS) == {
        "openai", "anthropic", "gemini", "groq", "cerebras", "sambanova", "azure", "vllm",
        "sglang", "llamacpp", "ollama", "litellm", "compatible", "embedded",
    }  # fmt: skip


def test_a_kind_speaks_dialects_that_there_are_and_takes_a_key_where_keys_go(
    kind: ProviderKind,
) -> None:
    assert kind.dialects
    assert set(kind.dialects) <= set(NAMES)
    assert kind.key_header.encode() in KEY_NAMES


def test_a_url_is_safe_on_its_way_or_stays_on_this_machine(kind: ProviderKind) -> None:
    if kind.url is None:
        assert kind.name in ("azure", "compatible", "embedded")
        return
    url = yarl.URL(kind.url)
    loopback = url.host == "127.0.0.1"
    assert url.scheme == ("http" if loopback else "https")
    assert not kind.url.endswith("/")
    assert loopback or not kind.local


def test_a_proxy_on_this_machine_is_not_taken_for_a_model_on_it() -> None:
    assert not KINDS["litellm"].local


def test_a_url_is_the_one_that_the_providers_own_client_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GROQ", "CEREBRAS"):
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
    cerebras_client = cerebras.cloud.sdk.Cerebras(api_key="k", warm_tcp_connection=False)
    asked = {
        "openai": openai.OpenAI(api_key="k").base_url,
        "anthropic": anthropic.Anthropic(api_key="k").base_url.join("/v1"),
        "groq": groq.Groq(api_key="k").base_url.join("/openai/v1"),
        "cerebras": cerebras_client.base_url.join("/v1"),
    }
    assert {name: str(url).rstrip("/") for name, url in asked.items()} == {
        name: KINDS[name].url for name in asked
    }


def test_the_page_for_users_says_what_is_known(kind: ProviderKind) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/providers.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{kind.name}` |"))
    _, url, dialects, key_header, tiers = (cell.strip() for cell in row.strip("|").split("|"))
    assert url == (f"`{kind.url}`" if kind.url else url)
    assert kind.url or "`" not in url
    assert dialects == ", ".join(kind.dialects)
    assert key_header == f"`{kind.key_header}`"
    assert tiers == (", ".join(kind.service_tiers) or "none")
