"""Whether System 1 may answer a chat request at all: it must understand every top-level field.

A field is understood if its value cannot change what the answer must contain, or only in ways
System 1 respects. A field not in the table, or with a value not foreseen here, escalates with the
reason `field:<name>`. Sampling numbers are checked for range, because an upstream would refuse a
request that is out of it, and System 1 must not answer what System 2 would refuse.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from reflexarc.wire.json import decode_strict

_LONGEST_MODEL_NAME = 256
MAX_FIELD_BYTES = 256 * 1024
"""Of a field that is neither `messages` nor `tools`; metadata may be long, but not like that."""


class Admission(msgspec.Struct, frozen=True):
    """`refusal` is the reason to escalate, None where System 1 may go on. `reasoning`: System 2 is
    asked to think, which it may want to see in later requests; `parallel`: a turn may make several
    calls."""

    refusal: str | None
    model: str = ""
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    reasoning: bool = False
    parallel: bool = True


def admit(fields: Mapping[str, msgspec.Raw], max_depth: int) -> Admission:
    """Judges the members of a request but for what is inside `messages` and `tools`.

    Raises `MalformedError` where a member is not strict JSON.
    """
    values: dict[str, Any] = {}
    for name, raw in fields.items():
        if name in ("messages", "tools"):
            continue
        understood = _UNDERSTOOD.get(name)
        if understood is None:
            return Admission(f"field:{name}")
        if len(memoryview(raw)) > MAX_FIELD_BYTES:
            return Admission("too_long")
        value = decode_strict(bytes(raw), name, max_depth)
        if not understood(value):
            return Admission(f"field:{name}")
        values[name] = value
    for required in ("model", "messages", "tools"):
        if required not in fields:
            return Admission(f"field:{required}")
    stream = bool(values.get("stream"))
    options = cast(dict[str, Any], values.get("stream_options") or {})
    if options and not stream:
        return Admission("field:stream_options")
    limits = [values.get("max_tokens"), values.get("max_completion_tokens")]
    if None not in limits:
        return Admission("field:max_tokens")
    return Admission(
        None,
        model=values["model"],
        stream=stream,
        include_usage=bool(options.get("include_usage")),
        max_tokens=limits[0] if limits[0] is not None else limits[1],
        reasoning=values.get("reasoning_effort") not in (None, "none"),
        parallel=values.get("parallel_tool_calls") is not False,
    )


def _model_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_MODEL_NAME


def _null(value: Any) -> bool:
    return value is None


def _null_or_false(value: Any) -> bool:
    return value is None or value is False


def _null_or_bool(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _null_or_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _null_or_empty(value: Any) -> bool:
    return value is None or value in ([], {})


def _null_or_auto(value: Any) -> bool:
    return value is None or value == "auto"


def _null_or_effort(value: Any) -> bool:
    return value is None or value in ("none", "minimal", "low", "medium", "high", "xhigh")


def _null_or_one(value: Any) -> bool:
    return value is None or (_number(value) and value == 1)


def _null_or_zero(value: Any) -> bool:
    return value is None or (_number(value) and value == 0)


def _null_or_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)


def _null_or_whole(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _null_or_within(low: float, high: float) -> Callable[[Any], bool]:
    def within(value: Any) -> bool:
        return value is None or (_number(value) and low <= value <= high)

    return within


def _null_or_metadata(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    pairs = cast(dict[str, Any], value)
    return len(pairs) <= 16 and all(isinstance(text, str) for text in pairs.values())


def _null_or_text_format(value: Any) -> bool:
    return value is None or value == {"type": "text"}


def _null_or_text_modality(value: Any) -> bool:
    return value is None or value == ["text"]


def _null_or_usage_option(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    options = cast(dict[str, Any], value)
    return all(
        name == "include_usage" and isinstance(wanted, bool) for name, wanted in options.items()
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_UNDERSTOOD: Mapping[str, Callable[[Any], bool]] = {
    "model": _model_name,
    "stream": _null_or_bool,
    "stream_options": _null_or_usage_option,
    "tool_choice": _null_or_auto,
    # Forbidden, it escalates later where several calls would be made.
    "parallel_tool_calls": _null_or_bool,
    "n": _null_or_one,
    # How System 2 would have sampled: System 1 answers only where it would repeat itself.
    "temperature": _null_or_within(0, 2),
    "top_p": _null_or_within(0, 1),
    "frequency_penalty": _null_or_within(-2, 2),
    "presence_penalty": _null_or_within(-2, 2),
    "seed": _null_or_whole,
    "logit_bias": _null_or_empty,
    # A limit that the call itself would break escalates later, when the call is known.
    "max_tokens": _null_or_count,
    "max_completion_tokens": _null_or_count,
    "stop": _null_or_empty,
    "logprobs": _null_or_false,
    "top_logprobs": _null_or_zero,
    "response_format": _null_or_text_format,
    "modalities": _null_or_text_modality,
    # Asked for, it escalates unless a replay test showed that turns without it are taken too. Not
    # said, it is the provider's default, under which what was learned was learned.
    "reasoning_effort": _null_or_effort,
    "store": _null_or_false,
    "user": _null_or_text,
    "safety_identifier": _null_or_text,
    "metadata": _null_or_metadata,
    "service_tier": _null_or_text,
    "prompt_cache_key": _null_or_text,
    "prompt_cache_retention": _null_or_text,
    # Known to the API, not answered by System 1 when used.
    "audio": _null,
    "function_call": _null,
    "functions": _null,
    "moderation": _null,
    "prediction": _null,
    "prompt_cache_options": _null,
    "verbosity": _null,
    "web_search_options": _null,
}
