"""Chat's words for why a model stopped, and where its thinking stands."""

from reflexarc.wire.losses import Losses
from reflexarc.wire.replies import Stop
from reflexarc.wire.turns import Ask

_ASK_FOR_REASONING = ("reasoning", "reasoning_format", "include_reasoning")

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filter",
    # Of providers that speak chat in their own way.
    "end_turn": "end",
    "eos": "end",
    "eos_token": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_length": "length",
    "stop_sequence": "stop_sequence",
}
_REASONS: dict[Stop, str] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "stop_sequence": "stop",
    "filter": "content_filter",
    "refusal": "content_filter",
    "pause": "length",
    "truncated": "length",
}


def thinking_member(ask: Ask) -> str:
    """Where a client looks for thinking: Groq's, Cerebras' and OpenRouter's look in `reasoning`,
    and are known by how they ask for it."""
    asked = ask.settings.more
    if any(name in asked for name in _ASK_FOR_REASONING):
        return "reasoning"
    return "reasoning_content"


def stop_from(reason: str | None) -> Stop:
    """A word nobody knows is no reason to call an answer cut: it did end."""
    if not reason:
        return "truncated"
    return _STOPS.get(reason.lower(), "end")


def reason_of(stop: Stop, losses: Losses, *, refusal: bool = False) -> str:
    """`refusal`: the answer says in words that it refuses; that is an answer, nothing was cut."""
    if stop == "refusal" and refusal:
        return "stop"
    if stop == "pause":
        losses.lose("stop_reason.pause_turn")
    return _REASONS[stop]
