"""Counts of tokens: the dialects that have them, and an estimate where none can be had."""

from collections.abc import Callable
from typing import Any

import msgspec

from reflexarc.steps.errors import MalformedError
from reflexarc.wire.dialects import dialect
from reflexarc.wire.dialects.gemini import counting as gemini
from reflexarc.wire.dialects.gemini.words import model_path
from reflexarc.wire.dialects.messages import counting as messages
from reflexarc.wire.ids import IdMap
from reflexarc.wire.json import decode_strict, encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import Ask, Media

BYTES_PER_TOKEN = 4
CHAT_COUNT_PATH = "/chat/completions/input_tokens"
_MEDIA_TOKENS = 1_000
"""Of an image or a page, roughly: their bytes say nothing of what they cost."""


class Counting(msgspec.Struct, frozen=True):
    """How a dialect counts. `path` follows the upstream's base, `RequestError` for a model that
    none can be made of; `asked` takes from the body of a
    count the request that is to be counted."""

    path: Callable[[str], str]
    write_request: Callable[[Ask], bytes]
    read: Callable[[dict[str, Any]], int]
    write: Callable[[int], dict[str, Any]]
    asked: Callable[[bytes], bytes]


def counting_of(name: str) -> Counting | None:
    """None for a dialect that cannot count."""
    return _COUNTING.get(name)


def vocabulary_counting() -> Counting:
    """How servers that hold a model's vocabulary count a chat request exactly: llama.cpp's own
    path, and the embedded engine's. `write` and `asked` are no client's."""
    return _CHAT


def estimated_input(ask: Ask) -> int:
    """A token for four bytes of what the request says in words and schemas, and a flat sum for
    each image or document."""
    medias = 0
    size = 0
    for turn in ask.turns:
        for part in turn.parts:
            if isinstance(part, Media):
                medias += 1
            else:
                size += len(encode_json(part))
    size += sum(len(encode_json(tool)) for tool in ask.tools)
    return max(1, size // BYTES_PER_TOKEN) + medias * _MEDIA_TOKENS


def _written(name: str, write: Callable[[Ask, Losses, IdMap], dict[str, Any]]) -> Any:
    def request(ask: Ask) -> bytes:
        return encode_json(write(ask, Losses(name), IdMap(dialect(name).ids)))

    return request


def _gemini_count(value: dict[str, Any]) -> int:
    count = gemini.read_count(value)
    if count is None:
        raise MalformedError("the upstream's count of tokens has no whole totalTokens")
    return count


def _gemini_asked(body: bytes) -> bytes:
    value = decode_strict(body)
    if not isinstance(value, dict):
        raise MalformedError("the body is not a JSON object")
    return encode_json(gemini.read_count_request(value))  # pyright: ignore[reportUnknownArgumentType] - of anything


def _as_it_is(body: bytes) -> bytes:
    return body


def _chat_request(ask: Ask) -> bytes:
    chat = dialect("chat")
    return encode_json(chat.write_ask(ask, Losses("chat"), IdMap(chat.ids)))


def _chat_count(value: dict[str, Any]) -> int:
    count = value.get("input_tokens")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise MalformedError("the upstream's count of tokens has no whole input_tokens")
    return count


_CHAT = Counting(
    path=lambda _: CHAT_COUNT_PATH,
    write_request=_chat_request,
    read=_chat_count,
    write=lambda count: {"input_tokens": count},
    asked=_as_it_is,
)
_COUNTING = {
    "messages": Counting(
        path=lambda _: "/messages/count_tokens",
        write_request=_written("messages", messages.count_request),
        read=messages.read_count,
        write=messages.write_count,
        asked=_as_it_is,
    ),
    "gemini": Counting(
        path=lambda model: f"{model_path(model)}:countTokens",
        write_request=_written("gemini", gemini.write_count_request),
        read=_gemini_count,
        write=gemini.write_count,
        asked=_gemini_asked,
    ),
}
