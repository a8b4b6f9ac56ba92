"""Tokens of an answer, read from its `usage`: that of a completion, or of a stream's last chunk."""

from typing import Any, cast

import msgspec

from reflexarc.store.records import StepEnded
from reflexarc.wire.chat_answer import estimated_tokens
from reflexarc.wire.sse import SseParser

_MOST = 2**53
"""Greater counts are nonsense, and more than a column holds."""


class Usage(msgspec.Struct, frozen=True):
    """`estimated`: at least one count was not given by who answered."""

    prompt: int
    cached: int
    completion: int
    estimated: bool


def usage_of(answer: bytes, content_type: str, request_bytes: int, generated_bytes: int) -> Usage:
    """Counts as given; where they are not, a token per four bytes. `generated_bytes`: of text and
    arguments. Never raises."""
    given = _given(answer, content_type)
    prompt = _count(given.get("prompt_tokens"))
    completion = _count(given.get("completion_tokens"))
    details = given.get("prompt_tokens_details")
    cached = 0
    if isinstance(details, dict):
        cached = _count(cast("dict[str, Any]", details).get("cached_tokens")) or 0
    return Usage(
        estimated_tokens(request_bytes) if prompt is None else prompt,
        cached,
        (estimated_tokens(generated_bytes) if generated_bytes else 0)
        if completion is None
        else completion,
        prompt is None or completion is None,
    )


def _given(answer: bytes, content_type: str) -> dict[str, Any]:
    if b'"usage"' not in answer:
        return {}
    if not content_type.lower().startswith("text/event-stream"):
        return _usage(answer)
    found: dict[str, Any] = {}
    for event in SseParser().feed(answer):
        if b'"usage"' in event.data:
            found = _usage(event.data) or found
    return found


def _usage(text: bytes) -> dict[str, Any]:
    try:
        body: Any = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    usage = cast("dict[str, Any]", body).get("usage") if isinstance(body, dict) else None
    return cast("dict[str, Any]", usage) if isinstance(usage, dict) else {}


def _count(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    return None


def cost_usd(usage: Usage, step: StepEnded) -> float | None:
    """What System 2 cost; nothing where it was not asked, None where its price is not known."""
    if step.decided_by != "system2":
        return 0.0
    if step.price is None:
        return None
    fresh, cached, output = step.price
    dollars = (usage.prompt - usage.cached) * fresh + usage.cached * cached
    return (dollars + usage.completion * output) / 1e6
