"""Counts of tokens under all the names that providers, gateways and tracers give them.

A name says nothing of what is inside what: that is `traces.inclusive`. Not for messages or times.
"""

import re
from typing import Literal

import msgspec

from reflexarc.traces.formats.fields import is_table
from reflexarc.traces.inclusive import Told, Usual, settled
from reflexarc.traces.loose import Table, amount, table
from reflexarc.traces.requests import ABSENT, Counts, derived, measured

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DEPTH = 3

_PROMPT = (
    "prompt_tokens", "input_tokens", "prompt_token_count", "input_token_count", "input", "prompt",
    "prompt_eval_count", "tokens_in",
)  # fmt: skip
_OUTPUT = (
    "completion_tokens", "output_tokens", "candidates_token_count", "completion_token_count",
    "output_token_count", "output", "completion", "eval_count", "tokens_out",
)  # fmt: skip
_READ = (
    "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
    "cache_read_input_tokens", "cache_read.input_tokens", "cache_read_tokens",
    "prompt_cache_read_tokens", "input_cache_read", "input_cached_tokens", "cached_input_tokens",
    "prompt_details.cache_read", "input_token_details.cache_read",
    "prompt_token_details.cache_read", "prompt_tokens_details.cache_read_tokens",
    "prompt_tokens_details.cache_read", "prompt_cache_hit_tokens", "cached_content_token_count",
    "cached_tokens", "details.cache_read_tokens", "details.cached_tokens",
    "details.cache_read_input_tokens", "input_cache_read_tokens", "cache_read",
    "prompt_details.cached_tokens", "input_token_details.cached_tokens",
)  # fmt: skip
_WRITTEN = (
    "cache_creation_input_tokens", "cache_creation.input_tokens", "cache_write_tokens",
    "prompt_tokens_details.cache_write_tokens", "prompt_tokens_details.cache_creation_tokens",
    "input_tokens_details.cache_write_tokens", "input_tokens_details.cache_creation_tokens",
    "prompt_cache_write_tokens", "input_cache_creation", "input_cache_creation_tokens",
    "input_cache_write", "cache_write.input_tokens", "cache_write_input_tokens",
    "prompt_details.cache_write", "prompt_details.cache_creation",
    "input_token_details.cache_creation", "prompt_token_details.cache_creation",
    "details.cache_write_tokens", "details.cache_creation_input_tokens", "cache_write",
)  # fmt: skip
_WRITTEN_5M = (
    "cache_creation.ephemeral_5m_input_tokens", "input_cache_creation_5m",
    "prompt_tokens_details.cache_creation_token_details.ephemeral_5m_input_tokens",
    "input_token_details.ephemeral_5m_input_tokens",
    "prompt_token_details.ephemeral_5m_input_tokens",
)  # fmt: skip
_WRITTEN_1H = (
    "cache_creation.ephemeral_1h_input_tokens", "input_cache_creation_1h",
    "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",
    "input_token_details.ephemeral_1h_input_tokens",
    "prompt_token_details.ephemeral_1h_input_tokens",
)  # fmt: skip
_REASONING = (
    "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
    "reasoning.output_tokens", "output_reasoning_tokens", "output_reasoning", "reasoning_tokens",
    "completion_details.reasoning", "output_token_details.reasoning", "thoughts_token_count",
    "completion_token_details.reasoning", "details.reasoning_tokens", "reasoning_output_tokens",
    "output_tokens_details.thinking_tokens", "completion_details.reasoning_tokens", "reasoning",
)  # fmt: skip
_TOOLS = "tool_use_prompt_token_count"
_TOTAL = ("total_tokens", "total_token_count", "total")
_BESIDE = frozenset(
    {"cache_read_input_tokens", "cache_creation_input_tokens", "cache_write_input_tokens"}
)


class Tokens(msgspec.Struct, frozen=True):
    """`unknown`: whether cached tokens are inside the prompt cannot be told."""

    counts: Counts = Counts()
    unknown: bool = False

    @property
    def known(self) -> bool:
        return self.counts.prompt.value is not None or self.counts.output.value is not None


def tokens_of(
    usage: object, usual: Usual | Literal["by name"] = "by name", *, reasoning_inside: bool = True
) -> Tokens:
    """The counts in a table of them, nested or not. `usual` is what the source does; "by name" is
    for a provider's own table, whose names tell."""
    named = _named(table(usage))
    told = Told(
        prompt=_prompt(named),
        output=_first(named, _OUTPUT),
        cache_read=_first(named, _READ),
        cache_write=_written(named),
        reasoning=_first(named, _REASONING),
        total=_first(named, _TOTAL) or None,
    )
    cached = (told.cache_read or 0) + (told.cache_write or 0)
    if not told.prompt and not told.output and not cached:
        # No request reads nothing: zeros stand here for what is not known.
        return Tokens()
    if usual == "by name":
        usual = "disjoint" if _stand_beside(named) else "inclusive"
        reasoning_inside = "candidates_token_count" not in named
    if told.prompt is not None and cached > told.prompt:
        told, usual = msgspec.structs.replace(told, total=None), "disjoint"
    found = settled(told, usual, reasoning_inside=reasoning_inside)
    prompt = derived if found.prompt != told.prompt or named.get(_TOOLS) else measured
    output = derived if found.output != told.output else measured
    return Tokens(
        Counts(
            prompt=ABSENT if found.prompt is None else prompt(found.prompt),
            cache_read=measured(told.cache_read),
            cache_write=measured(told.cache_write),
            cache_write_1h=measured(_first(named, _WRITTEN_1H)),
            output=ABSENT if found.output is None else output(found.output),
            reasoning=measured(told.reasoning),
        ),
        unknown=found.unknown,
    )


def _prompt(named: dict[str, float]) -> float | None:
    """With what a provider's own tools put into it, which one API counts beside it."""
    prompt = _first(named, _PROMPT)
    return prompt if prompt is None else prompt + named.get(_TOOLS, 0.0)


def _written(named: dict[str, float]) -> float | None:
    """The whole of it, where its parts by time to live may be those of the first pass alone."""
    parts = [_first(named, names) for names in (_WRITTEN_5M, _WRITTEN_1H)]
    known = [part for part in (_first(named, _WRITTEN), sum(p or 0 for p in parts)) if part]
    if known:
        return max(known)
    is_told = _first(named, _WRITTEN) is not None or any(part is not None for part in parts)
    return 0.0 if is_told else None


def _stand_beside(named: dict[str, float]) -> bool:
    """Anthropic's own form: `input_tokens` and, beside it, what was read and written."""
    if "prompt_tokens" in named or "prompt_token_count" in named:
        return False
    if any(name.startswith("input_tokens_details.") for name in named):
        return False
    return any(name in _BESIDE or name.startswith("cache_creation.") for name in named)


def _named(fields: Table, before: str = "", depth: int = _DEPTH) -> dict[str, float]:
    """Numbers by name in small letters, those of inner tables behind a dot."""
    found: dict[str, float] = {}
    for key, value in fields.items():
        name = before + _HUMP.sub("_", key).lower()
        if is_table(value):
            if depth:
                found.update(_named(table(value), f"{name}.", depth - 1))
            continue
        number = amount(value)
        if number is not None:
            found.setdefault(name, number)
    return found


def _first(named: dict[str, float], names: tuple[str, ...]) -> float | None:
    """The first that is something, else a zero where one is told."""
    told = [named[name] for name in names if name in named]
    return next((one for one in told if one), told[0] if told else None)
