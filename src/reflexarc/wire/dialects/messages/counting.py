"""Counting a request's tokens: `POST /v1/messages/count_tokens`."""

from typing import Any, cast

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects.messages.writing import write_ask
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask

# What says how an answer is made, and takes no room in a prompt: it is refused here.
_NOT_COUNTED = (
    "max_tokens",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "service_tier",
    "container",
    "inference_geo",
    "diagnostics",
)


def count_request(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    """The body of a request that counts what asking this would take."""
    body = write_ask(ask, losses, ids)
    return {name: value for name, value in body.items() if name not in _NOT_COUNTED}


def read_count(value: Any) -> int:
    """Raises `MalformedError`."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    count = fields.get("input_tokens")
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise MalformedError("the upstream's count of tokens has no whole input_tokens")
    return count


def write_count(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens}
