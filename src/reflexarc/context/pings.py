"""A request that asks for next to nothing: its prompt is read from its cache, and stays there."""

import msgspec

from reflexarc.wire.json import encode_json
from reflexarc.wire.members import with_member

LEAST_OUTPUT = {"chat": 1, "responses": 16, "messages": 1, "gemini": 1}
"""Tokens of an answer that the API takes as the least."""
_THINKING = ("thinking", "reasoning", "reasoning_effort", "output_config")
_SEVERAL = ("n", "background", "conversation", "previous_response_id", "store", "stream")
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OFF = frozenset({b"null", b"false", b"1"})


def ping_of(body: bytes, spoken: str) -> bytes | None:
    """The same prompt, its answer cut as short as can be, as a whole answer. None where that is not
    the same prompt, or does more than answer: a model that thinks, several answers, one that is
    stored."""
    try:
        members = _object.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if any(name in members and bytes(members[name]) != b"null" for name in _THINKING):
        return None
    if any(bytes(members.get(name, b"null")) not in _OFF for name in _SEVERAL if name != "stream"):
        return None
    if spoken == "responses" and bytes(members.get("store", b"true")) != b"false":
        return None
    least = encode_json(LEAST_OUTPUT[spoken])
    if spoken == "gemini":
        return _of_gemini(body, members, least)
    name = "max_output_tokens" if spoken == "responses" else "max_tokens"
    if spoken == "chat" and "max_completion_tokens" in members:
        name = "max_completion_tokens"
    return with_member(body, name, least, members)


def _of_gemini(body: bytes, members: dict[str, msgspec.Raw], least: bytes) -> bytes | None:
    name = "generation_config" if "generation_config" in members else "generationConfig"
    given = bytes(members.get(name, b"{}"))
    if b"hinking" in given:
        return None
    made = with_member(given, "maxOutputTokens", least)
    return None if made is None else with_member(body, name, made, members)
