"""The HTTP API of a llama.cpp server, as far as the embedded engine needs it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec

from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.upstream.embedded.constrain import PROBE_OPENING, exactly, probe_schema
from reflexarc.wire.sse import SseParser

CHAT_SLOT = 0
"""Conversations use this slot, whose cache holds the last one's prefix. Others score."""

_PROBE_TOKENS = 8


class ContextTooLongError(InputError):
    """Prompt and answer do not fit the model's context."""

    code = "context_length_exceeded"


class SchemaError(InputError):
    """llama.cpp cannot make a grammar of it."""

    code = "unsupported_schema"


class Piece(msgspec.Struct, frozen=True):
    """Some text as it is written. The last piece has `stop` and the counts."""

    content: str = ""
    stop: bool = False
    stop_type: str = ""
    tokens_predicted: int = 0
    tokens_evaluated: int = 0
    timings: "_Timings | None" = None

    @property
    def cached_tokens(self) -> int:
        return 0 if self.timings is None else self.timings.cache_n


class _Timings(msgspec.Struct, frozen=True):
    cache_n: int = 0


class _Probability(msgspec.Struct, frozen=True):
    logprob: float


class _Scored(msgspec.Struct, frozen=True):
    content: str
    tokens_predicted: int = 0
    completion_probabilities: list[_Probability] = []


class _Tokens(msgspec.Struct, frozen=True):
    tokens: list[int]


class _Detail(msgspec.Struct, frozen=True):
    message: str = ""
    type: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    error: _Detail = _Detail()


class Llama:
    """`base` is the server's address. Requests run one after the other: there is one thread."""

    def __init__(self, base: str, key: str, session: aiohttp.ClientSession) -> None:
        self._base = base
        self._headers = {"authorization": f"Bearer {key}"}
        self._session = session

    async def tokens(self, text: str) -> list[int]:
        """A text within a prompt, as the model's tokenizer cuts it."""
        body = {"content": text, "add_special": False}
        async with self._asked(body, "/tokenize") as response:
            return msgspec.json.decode(await _body(response), type=_Tokens).tokens

    async def score(self, slot: int, prompt: str, words: Sequence[int]) -> float:
        """Natural log-probability of these tokens right after `prompt`."""
        body = {
            "prompt": prompt,
            "n_predict": len(words),
            "n_probs": 1,
            "temperature": 0,
            "grammar": exactly(words),
            "id_slot": slot,
        }
        async with self._asked(body) as response:
            scored = msgspec.json.decode(await _body(response), type=_Scored)
        if scored.tokens_predicted != len(words):
            raise UpstreamError("the engine did not write the words that it was held to")
        # A character of several tokens is told as its last one: the same ones for every prompt.
        return sum(token.logprob for token in scored.completion_probabilities)

    async def can_follow(self, schema: Mapping[str, Any]) -> bool:
        """Whether the schema can be made a grammar."""
        body = {
            "prompt": "Reply:",
            "n_predict": _PROBE_TOKENS,
            "temperature": 0,
            "json_schema": probe_schema(schema),
            "id_slot": CHAT_SLOT + 1,
        }
        async with self._asked(body) as response:
            if response.status == 400:
                return False
            scored = msgspec.json.decode(await _body(response), type=_Scored)
        return scored.content.startswith(PROBE_OPENING)

    async def write(
        self,
        prompt: str,
        max_tokens: int,
        sampling: Mapping[str, float],
        stop: Sequence[str],
        schema: Mapping[str, Any] | None,
    ) -> AsyncGenerator[Piece]:
        """Pieces as they are written. Raises `ContextTooLongError`, `UpstreamError`."""
        body: dict[str, Any] = {
            "prompt": prompt,
            "n_predict": max_tokens,
            "stop": list(stop),
            "id_slot": CHAT_SLOT,
            "cache_prompt": True,
            "stream": True,
            **sampling,
        }
        if schema is not None:
            body["json_schema"] = schema
        async with self._asked(body) as response:
            if response.status != 200:
                await _body(response)
            parser = SseParser()
            async for chunk in response.content.iter_any():
                for event in parser.feed(chunk):
                    piece = msgspec.json.decode(event.data, type=Piece)
                    yield piece
                    if piece.stop:
                        return
        raise UpstreamError("the engine broke off inside its answer")

    def _asked(self, body: Mapping[str, Any], path: str = "/completion") -> Any:
        data = msgspec.json.encode(body)
        return self._session.post(f"{self._base}{path}", data=data, headers=self._headers)


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Raises where the server refused."""
    content = await response.read()
    if response.status == 200:
        return content
    try:
        detail = msgspec.json.decode(content, type=_Refusal).error
    except msgspec.DecodeError:
        detail = _Detail(content[:200].decode("utf-8", "replace"))
    if detail.type == "exceed_context_size_error":
        raise ContextTooLongError(detail.message)
    raise UpstreamError(f"the engine answered {response.status}: {detail.message}")
