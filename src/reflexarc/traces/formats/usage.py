"""Counts from the `usage` that providers and litellm send, whichever of their forms it has."""

from reflexarc.traces.inclusive import Told, settled
from reflexarc.traces.loose import Table, amount, table
from reflexarc.traces.requests import Counts, Figure, derived, measured


def counts_of(usage: Table) -> tuple[Counts, bool]:
    """OpenAI's chat and responses forms, in which cached tokens are a part of the prompt, and
    Anthropic's, in which they stand beside `input_tokens`; also whether that cannot be told."""
    is_chat = amount(usage.get("prompt_tokens")) is not None
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
    told = Told(
        prompt=amount(usage.get("prompt_tokens" if is_chat else "input_tokens")),
        output=_first(usage, "completion_tokens", "output_tokens"),
        cache_read=read,
        cache_write=written,
        reasoning=_reasoning(usage, out_details),
        total=amount(usage.get("total_tokens")),
    )
    is_anthropic = not is_chat and "input_tokens_details" not in usage
    found = settled(told, "disjoint" if is_anthropic else "inclusive")
    counts = Counts(
        prompt=_known(found.prompt, told.prompt),
        cache_read=measured(read),
        cache_write=measured(written),
        output=_known(found.output, told.output),
        reasoning=measured(told.reasoning),
    )
    return counts, found.unknown


def _known(found: float | None, told: float | None) -> Figure:
    return measured(found) if found == told else derived(found)


def _reasoning(usage: Table, details: Table) -> float | None:
    found = _first(details, "reasoning_tokens")
    return _first(usage, "reasoning_tokens") if found is None else found


def _first(fields: Table, *names: str) -> float | None:
    for name in names:
        found = amount(fields.get(name))
        if found is not None:
            return found
    return None
