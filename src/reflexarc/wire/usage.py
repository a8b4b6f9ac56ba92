"""What an answer used, in one convention, and the dialects' own conventions as functions.

Dialects disagree on what "input" holds: OpenAI and Gemini count cached tokens inside it, Anthropic
beside it. Here `input` always holds all of the prompt, and every token is counted once.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec


class Usage(msgspec.Struct, frozen=True):
    """Tokens. `input` is the whole prompt, `cache_read` and `cache_write` parts of it
    (`cache_write_1h` a part of `cache_write`); `output` is all that was generated, `reasoning` a
    part of it."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0


def usage_from_chat(given: Any) -> Usage | None:
    """OpenAI chat: `prompt_tokens` holds the cached ones, `completion_tokens` the reasoning."""
    fields = _fields(given)
    if fields is None or not ("prompt_tokens" in fields or "completion_tokens" in fields):
        return None
    inner = _fields(fields.get("prompt_tokens_details")) or {}
    outer = _fields(fields.get("completion_tokens_details")) or {}
    return Usage(
        input=_count(fields, "prompt_tokens"),
        output=_count(fields, "completion_tokens"),
        cache_read=_count(inner, "cached_tokens"),
        cache_write=_count(inner, "cache_write_tokens"),
        reasoning=_count(outer, "reasoning_tokens"),
    )


def usage_to_chat(usage: Usage) -> dict[str, Any]:
    details = {"cached_tokens": usage.cache_read}
    if usage.cache_write:
        details["cache_write_tokens"] = usage.cache_write
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def usage_from_responses(given: Any) -> Usage | None:
    """OpenAI responses: as chat, under other names."""
    fields = _fields(given)
    if fields is None or not ("input_tokens" in fields or "output_tokens" in fields):
        return None
    inner = _fields(fields.get("input_tokens_details")) or {}
    outer = _fields(fields.get("output_tokens_details")) or {}
    return Usage(
        input=_count(fields, "input_tokens"),
        output=_count(fields, "output_tokens"),
        cache_read=_count(inner, "cached_tokens"),
        cache_write=_count(inner, "cache_write_tokens"),
        reasoning=_count(outer, "reasoning_tokens"),
    )


def usage_to_responses(usage: Usage) -> dict[str, Any]:
    """All the details: the type that clients read it with demands each."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def usage_from_messages(given: Any) -> Usage | None:
    """Anthropic: `input_tokens` is what was neither read from a cache nor written to one."""
    fields = _fields(given)
    if fields is None or not ("input_tokens" in fields or "output_tokens" in fields):
        return None
    read = _count(fields, "cache_read_input_tokens")
    split = _fields(fields.get("cache_creation")) or {}
    hour = _count(split, "ephemeral_1h_input_tokens")
    written = max(
        _count(fields, "cache_creation_input_tokens"),
        hour + _count(split, "ephemeral_5m_input_tokens"),
    )
    details = _fields(fields.get("output_tokens_details")) or {}
    return Usage(
        input=_count(fields, "input_tokens") + read + written,
        output=_count(fields, "output_tokens"),
        cache_read=read,
        cache_write=written,
        cache_write_1h=hour,
        reasoning=_count(details, "thinking_tokens"),
    )


def usage_to_messages(usage: Usage) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.cache_write_1h:
        fields["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write - usage.cache_write_1h,
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
        }
    if usage.reasoning:
        fields["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return fields


def usage_from_gemini(given: Any) -> Usage | None:
    """Gemini: `promptTokenCount` holds the cached ones; thoughts are counted beside candidates,
    and results of hosted tools beside the prompt."""
    fields = _fields(given)
    if fields is None or not ("promptTokenCount" in fields or "totalTokenCount" in fields):
        return None
    thoughts = _count(fields, "thoughtsTokenCount")
    return Usage(
        input=_count(fields, "promptTokenCount") + _count(fields, "toolUsePromptTokenCount"),
        output=_count(fields, "candidatesTokenCount") + thoughts,
        cache_read=_count(fields, "cachedContentTokenCount"),
        reasoning=thoughts,
    )


def usage_to_gemini(usage: Usage) -> dict[str, Any]:
    fields = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": max(0, usage.output - usage.reasoning),
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.reasoning:
        fields["thoughtsTokenCount"] = usage.reasoning
    if usage.cache_read:
        fields["cachedContentTokenCount"] = usage.cache_read
    return fields


def merged(before: Usage | None, after: Usage | None) -> Usage | None:
    """Two tellings of one answer's usage, the later cumulative: the larger of each, not the sum."""
    if before is None or after is None:
        return after if before is None else before
    return Usage(
        *(max(getattr(before, name), getattr(after, name)) for name in Usage.__struct_fields__)
    )


def _fields(value: Any) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def _count(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return 0
    return int(value)
