"""Whether System 1 may answer a request of any dialect but chat: it must understand all of it.

A setting is understood if its value cannot change what the answer must contain, or only in ways
System 1 respects. A member that its dialect's reader does not know, or that is not in the table
here, escalates with the reason `field:<name>`.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from reflexarc.gateway.admission import Admission
from reflexarc.wire.turns import Ask, Settings, ToolChoice

_LONGEST_MODEL_NAME = 256


def admit_ask(ask: Ask) -> Admission:
    """Judges everything but the tools and the conversation."""
    settings = ask.settings
    refused = _refused(ask.dialect, settings) or _unknown(ask.dialect, settings.more)
    if refused is None and not ask.tools:
        refused = "tools"
    if refused is not None:
        return Admission(f"field:{refused}")
    reasoning = settings.reasoning
    return Admission(
        None,
        model=settings.model,
        stream=settings.stream,
        include_usage=settings.include_usage,
        max_tokens=settings.max_tokens,
        reasoning=reasoning is not None and reasoning.enabled is not False,
        parallel=settings.parallel is not False,
    )


def _refused(dialect: str, settings: Settings) -> str | None:
    """The first setting that is not understood, or that its API would refuse."""
    choice = settings.choice
    limit = settings.max_tokens
    fits = {
        "model": 0 < len(settings.model) <= _LONGEST_MODEL_NAME,
        "tool_choice": choice is None or _is_plain_auto(choice),
        "n": settings.count in (None, 1),
        "temperature": _within(settings.temperature, 0, 1 if dialect == "messages" else 2),
        "top_p": _within(settings.top_p, 0, 1),
        "top_k": settings.top_k is None or settings.top_k > 0,
        "presence_penalty": _within(settings.presence_penalty, -2, 2),
        "frequency_penalty": _within(settings.frequency_penalty, -2, 2),
        # One API wants to be told.
        "max_tokens": dialect != "messages" if limit is None else limit > 0,
        "stop": not settings.stop,
        "output": settings.output is None,
        # Of one dialect alone the gateway keeps what is to be stored.
        "store": not settings.store or dialect == "responses",
        "verbosity": settings.verbosity is None,
        # A conversation that was expanded has none left.
        "previous_response_id": settings.previous is None,
    }
    return next((name for name, fit in fits.items() if not fit), None)


def _is_plain_auto(choice: ToolChoice) -> bool:
    """Gemini's may say more than its mode: that arguments are streamed piece by piece, say."""
    return choice.mode == "auto" and choice.value in (None, {"mode": "AUTO"})


def _within(value: float | None, low: float, high: float) -> bool:
    return value is None or low <= value <= high


def _unknown(dialect: str, more: Mapping[str, Any]) -> str | None:
    known = _UNDERSTOOD[dialect]
    for name, value in more.items():
        understood = known.get(name)
        if understood is None or not understood(value):
            return name
    return None


def _any(_: Any) -> bool:
    return True


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _empty(value: Any) -> bool:
    return value in (False, 0, "", [], {})


def _usual_truncation(value: Any) -> bool:
    return value in ("auto", "disabled")


def _obfuscation(value: Any) -> bool:
    """Padding of events against onlookers; what pads nothing pads enough where all is sent at
    once."""
    options = cast("dict[str, Any]", value) if isinstance(value, dict) else {"?": 1}
    return set(options) <= {"include_obfuscation"}


_UNDERSTOOD: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "responses": {
        "truncation": _usual_truncation,
        "background": _empty,
        "include": _empty,
        "safety_identifier": _text,
        "prompt_cache_retention": _text,
        "top_logprobs": _empty,
        "stream_options": _obfuscation,
    },
    "messages": {
        # A mark of prompt caching for the request as a whole.
        "cache_control": _any,
        "inference_geo": _text,
        "mcp_servers": _empty,
    },
    "gemini": {
        # What they would block System 2 would not have been let say either.
        "safetySettings": _any,
        "labels": _any,
    },
}
