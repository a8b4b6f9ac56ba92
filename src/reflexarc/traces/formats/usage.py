"""Counts from the `usage` that providers and litellm send, whichever of their forms it has."""

from reflexarc.traces.loose import Table, amount, table
from reflexarc.traces.requests import ABSENT, Counts, Figure, derived, measured


def counts_of(usage: Table) -> Counts:
    """OpenAI's chat and responses forms, in which cached tokens are a part of the prompt, and
    Anthropic's, in which they stand beside `input_tokens`.

    Where more tokens were cached than a prompt has, they stood beside it as well.
    """
    is_chat = amount(usage.get("prompt_tokens")) is not None
    given = amount(usage.get("prompt_tokens" if is_chat else "input_tokens"))
    details = table(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    out_details = table(
        usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    )
    read = _first(details, "cached_tokens")
    if read is None:
        read = _first(usage, "cache_read_input_tokens", "cache_read_tokens")
    written = _first(usage, "cache_creation_input_tokens", "cache_write_tokens")
    if written is None:
        written = _first(details, "cache_write_tokens", "cache_creation_tokens")
    beside = (read or 0) + (written or 0)
    is_anthropic = not is_chat and "input_tokens_details" not in usage
    return Counts(
        prompt=_prompt(given, beside, apart=is_anthropic),
        cache_read=measured(read),
        cache_write=measured(written),
        output=measured(_first(usage, "completion_tokens", "output_tokens")),
        reasoning=measured(_reasoning(usage, out_details)),
    )


def _prompt(given: float | None, beside: float, *, apart: bool) -> Figure:
    if given is None:
        return ABSENT
    if beside and (apart or beside > given):
        return derived(given + beside)
    return measured(given)


def _reasoning(usage: Table, details: Table) -> float | None:
    found = _first(details, "reasoning_tokens")
    return _first(usage, "reasoning_tokens") if found is None else found


def _first(fields: Table, *names: str) -> float | None:
    for name in names:
        found = amount(fields.get(name))
        if found is not None:
            return found
    return None
