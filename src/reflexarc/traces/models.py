"""Names of models in logs: whose they are, where a name says so itself."""

_OWNERS = {
    "openai": "openai",
    "openai-api": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "google-gla": "gemini",
    "google-genai": "gemini",
    "gemini": "gemini",
    "groq": "groq",
    "cerebras": "cerebras",
    "sambanova": "sambanova",
}

_SOLD_BY_OTHERS = ("anthropic", "openai")


def owner(name: str) -> str:
    """The provider named before a model, as `openai/gpt-6.2` or `openai:gpt-6.2`, in the words of
    the list of prices; "" where none is, or another (the same model costs another sum there)."""
    before, mark, rest = name.replace(":", "/", 1).partition("/")
    whose = _OWNERS.get(before.lower(), "") if mark else ""
    # anthropic/bedrock/..., openai/azure/...: that provider's model, another's prices
    return "" if whose in _SOLD_BY_OTHERS and "/" in rest else whose


def provider(name: str) -> str:
    """A provider's name as the list of prices has it; "" for one that it does not have."""
    return _OWNERS.get(name.lower(), "")


def bare(name: str) -> str:
    """A model's name without the provider before it, where that is one we know; else as it is."""
    return name.replace(":", "/", 1).partition("/")[2] if owner(name) else name
