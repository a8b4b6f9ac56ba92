"""Counting tokens (`countTokens`), asked and answered."""

from typing import Any, cast

from reflexarc.wire.dialects.gemini.shapes import members
from reflexarc.wire.dialects.gemini.writing import write_ask
from reflexarc.wire.dialects.shapes import fault
from reflexarc.wire.ids import IdMap
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask


def write_count_request(ask: Ask, losses: Losses, ids: IdMap) -> dict[str, Any]:
    """The body that has all of a request counted: its instructions and tools too."""
    body = write_ask(ask, losses, ids)
    if set(body) == {"contents"}:
        return body
    return {"generateContentRequest": {"model": f"models/{ask.settings.model}", **body}}


def read_count_request(value: dict[str, Any]) -> dict[str, Any]:
    """The request to be counted, as `generateContent` has it. Raises `RequestError`."""
    given = members(value, "the body")
    whole = given.get("generateContentRequest")
    if whole is None:
        return given
    if "contents" in given:
        raise fault("contents", "stands beside generateContentRequest: give one of them")
    return members(whole, "generateContentRequest")


def read_count(value: Any) -> int | None:
    """None where the answer tells no count."""
    count = cast("dict[str, Any]", value).get("totalTokens") if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def write_count(tokens: int) -> dict[str, Any]:
    return {"totalTokens": tokens}
