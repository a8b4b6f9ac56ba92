"""Whether a turn carries a model's thinking: a provider may want it back, signed, when the turn
is replayed, and may refuse a turn that has none.

The names are those of the field: `reasoning_content` (DeepSeek, vLLM, SGLang), `reasoning` and
`reasoning_details` (OpenRouter), `thinking_blocks` (LiteLLM), content parts of those types, and
`thought_signature` beside a call (Gemini).
"""

from collections.abc import Mapping
from typing import Any, cast

_TURN_KEYS = ("reasoning_content", "reasoning_details", "reasoning", "thinking_blocks", "thinking")
_PART_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning"})
_SIGNATURES = ("thought_signature", "thoughtSignature", "signature")
_MAX_DEPTH = 3


def carries_thinking(turn: Mapping[str, Any]) -> bool:
    """For an assistant message of a history, the message of a completion, or a stream's delta."""
    if any(turn.get(key) for key in _TURN_KEYS):
        return True
    content = turn.get("content")
    if isinstance(content, list):
        for part in cast("list[Any]", content):
            if isinstance(part, dict) and cast("dict[str, Any]", part).get("type") in _PART_TYPES:
                return True
    calls = turn.get("tool_calls")
    for call in cast("list[Any]", calls) if isinstance(calls, list) else ():
        if isinstance(call, dict) and _is_signed(call, _MAX_DEPTH):
            return True
    return _is_signed(turn.get("extra_content"), _MAX_DEPTH)


def is_thinking_part(kind: str) -> bool:
    """Whether a content part of this type holds thinking."""
    return kind in _PART_TYPES


def _is_signed(value: Any, depth: int) -> bool:
    """Whether a signature stands in an object, or in one of its objects so deep down. A call's
    arguments are text, and so never looked into."""
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, Any]", value)
    if any(fields.get(name) for name in _SIGNATURES):
        return True
    return depth > 0 and any(_is_signed(part, depth - 1) for part in fields.values())
