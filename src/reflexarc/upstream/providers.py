"""What is known of kinds of providers: where they are, what they speak, how a key is shown to them.

Facts with the page or client library that says so; which models and prices they have is not here.
A configured provider may say otherwise in each point.
"""

from msgspec import Struct

_OPENAI_TIERS = ("auto", "default", "flex", "priority")


class ProviderKind(Struct, frozen=True):
    """One kind. `url`: the base URL where it is always the same, None where it must be configured.
    `dialects`: what it speaks, the first being what others are converted to. `key_header`: where
    a key goes, in `authorization` after `Bearer `. `local`: runs on one's own machines by default.
    `service_tiers`: the values that its API takes, none where it has no such field. `charged_as`:
    its name among prices. `source`: what says so."""

    name: str
    url: str | None
    dialects: tuple[str, ...]
    key_header: str
    local: bool
    service_tiers: tuple[str, ...]
    charged_as: str
    source: str


def _kind(
    name: str,
    url: str | None,
    source: str,
    *,
    dialects: tuple[str, ...] = ("chat",),
    key_header: str = "authorization",
    local: bool = False,
    service_tiers: tuple[str, ...] = (),
) -> ProviderKind:
    return ProviderKind(name, url, dialects, key_header, local, service_tiers, name, source)


_ALL = (
    _kind(
        "openai",
        "https://api.openai.com/v1",
        "https://platform.openai.com/docs/api-reference/chat/create, openai-python",
        dialects=("chat", "responses"),
        service_tiers=(*_OPENAI_TIERS, "scale", "fast"),
    ),
    _kind(
        "anthropic",
        "https://api.anthropic.com/v1",
        "https://platform.claude.com/docs/en/api/service-tiers, anthropic-sdk-python",
        dialects=("messages",),
        key_header="x-api-key",
        service_tiers=("auto", "standard_only"),
    ),
    _kind(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "https://ai.google.dev/api, https://ai.google.dev/gemini-api/docs/optimization",
        dialects=("gemini",),
        key_header="x-goog-api-key",
        service_tiers=("standard", "flex", "priority"),
    ),
    _kind(
        "groq",
        "https://api.groq.com/openai/v1",
        "https://console.groq.com/docs/service-tiers",
        service_tiers=("auto", "on_demand", "flex", "performance"),
    ),
    _kind(
        "cerebras",
        "https://api.cerebras.ai/v1",
        "https://inference-docs.cerebras.ai/capabilities/service-tiers",
        service_tiers=_OPENAI_TIERS,
    ),
    _kind(
        "sambanova",
        "https://api.sambanova.ai/v1",
        "https://docs.sambanova.ai/docs/en/get-started/api-keys-urls",
    ),
    _kind(
        "azure",
        None,  # https://RESOURCE.openai.azure.com/openai/v1
        "https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle",
        dialects=("chat", "responses"),
        key_header="api-key",
        service_tiers=_OPENAI_TIERS,
    ),
    _kind("vllm", "http://127.0.0.1:8000/v1", "https://docs.vllm.ai", local=True),
    _kind(
        "sglang",
        "http://127.0.0.1:30000/v1",
        "https://docs.sglang.io/docs/basic_usage/anthropic_api",
        local=True,
    ),
    _kind(
        "llamacpp",
        "http://127.0.0.1:8080/v1",
        "https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
        local=True,
    ),
    _kind(
        "ollama",
        "http://127.0.0.1:11434/v1",
        "https://docs.ollama.com/api/openai-compatibility",
        local=True,
    ),
    # A proxy of one's own, but what stands behind it is commonly elsewhere.
    _kind(
        "litellm",
        "http://127.0.0.1:4000/v1",
        "https://docs.litellm.ai/docs/simple_proxy",
        service_tiers=_OPENAI_TIERS,
    ),
    _kind(
        "compatible",
        None,
        "whoever speaks OpenAI's chat completions",
        service_tiers=_OPENAI_TIERS,
    ),
    _kind("embedded", None, "docs/local.md", local=True),
)

KINDS: dict[str, ProviderKind] = {kind.name: kind for kind in _ALL}
"""Every kind by its name."""
