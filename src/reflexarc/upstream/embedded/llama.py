"""The HTTP API of a llama.cpp server, as far as the embedded engine needs it."""

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import aiohttp
import msgspec

from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.upstream.embedded.constrain import PROBE_OPENING, exactly, probe_schema
from reflexarc.wire.sse import SseParser

_PROBE_TOKENS = 8
_ATTEMPTS = 3


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

    @property
    def accepted_tokens(self) -> int:
        """Drafted ones that were right."""
        return 0 if self.timings is None else self.timings.draft_n_accepted

    @property
    def rejected_tokens(self) -> int:
        return 0 if self.timings is None else self.timings.draft_n - self.timings.draft_n_accepted


class _Timings(msgspec.Struct, frozen=True):
    cache_n: int = 0
    draft_n: int = 0
    draft_n_accepted: int = 0


class _Probability(msgspec.Struct, frozen=True):
    logprob: float


class _Scored(msgspec.Struct, frozen=True):
    content: str
    tokens_predicted: int = 0
    completion_probabilities: list[_Probability] = []
    timings: _Timings = _Timings()


class _Tokens(msgspec.Struct, frozen=True):
    tokens: list[int]


class _Moved(msgspec.Struct, frozen=True):
    n_saved: int = 0


class _Detail(msgspec.Struct, frozen=True):
    message: str = ""
    type: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    error: _Detail = _Detail()


class Llama:
    """`base` is the server's address. Requests of one slot run one after the other. A connection
    that is dropped before a byte of the answer came is tried again: llama.cpp does that to one that
    it kept."""

    def __init__(self, base: str, key: str, session: aiohttp.ClientSession) -> None:
        self._base = base
        self._headers = {"authorization": f"Bearer {key}"}
        self._session = session

    async def tokens(self, text: str, *, whole: bool = False) -> list[int]:
        """A text within a prompt, or a `whole` prompt, as the model's tokenizer cuts it."""
        body = {"content": text, "add_special": whole}
        async with self._asked(body, "/tokenize") as response:
            return msgspec.json.decode(await _body(response), type=_Tokens).tokens

    async def score(self, slot: int, prompt: str, words: Sequence[int]) -> float:
        """Natural log-probability of these tokens right after `prompt`."""
        scored = await self._scored(slot, prompt, words)
        if not scored.timings.draft_n:
            return _sum(scored)
        # Of a token that was drafted and accepted llama.cpp tells no probability, but 1. It drafts
        # nothing where one token is asked for.
        before = await self.tokens(prompt, whole=True)
        total = 0.0
        for word in words:
            total += _sum(await self._scored(slot, before, [word]))
            before.append(word)
        return total

    async def _scored(self, slot: int, prompt: str | list[int], words: Sequence[int]) -> _Scored:
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
        return scored

    async def keep_only(self, slot: int, text: str) -> None:
        """Of what the slot holds no more stays than what `text` begins with."""
        body = {"prompt": text, "n_predict": 0, "id_slot": slot, "cache_prompt": True}
        async with self._asked(body) as response:
            await _body(response)

    async def save(self, slot: int, filename: str) -> int:
        """Writes what the slot holds into that file of the directory for it; its tokens. Raises
        `UpstreamError`."""
        body = {"filename": filename}
        async with self._asked(body, f"/slots/{slot}?action=save") as response:
            return msgspec.json.decode(await _body(response), type=_Moved).n_saved

    async def restore(self, slot: int, filename: str) -> None:
        """Raises `UpstreamError` where the file is none or does not fit. One that was cut off
        ends the process: it has to be looked at before."""
        async with self._asked({"filename": filename}, f"/slots/{slot}?action=restore") as response:
            await _body(response)

    async def erase(self, slot: int) -> None:
        async with self._asked({}, f"/slots/{slot}?action=erase") as response:
            await _body(response)

    async def can_follow(self, slot: int, schema: Mapping[str, Any]) -> bool:
        """Whether the schema can be made a grammar."""
        body = {
            "prompt": "Reply:",
            "n_predict": _PROBE_TOKENS,
            "temperature": 0,
            "json_schema": probe_schema(schema),
            "id_slot": slot,
        }
        async with self._asked(body) as response:
            if response.status == 400:
                return False
            scored = msgspec.json.decode(await _body(response), type=_Scored)
        return scored.content.startswith(PROBE_OPENING)

    async def write(
        self,
        slot: int,
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
            "id_slot": slot,
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

    @contextlib.asynccontextmanager
    async def _asked(
        self, body: Mapping[str, Any], path: str = "/completion"
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        async with await self._sent(path, msgspec.json.encode(body)) as response:
            yield response

    async def _sent(self, path: str, data: bytes) -> aiohttp.ClientResponse:
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                return await self._post(path, data)
        return await self._post(path, data)

    async def _post(self, path: str, data: bytes) -> aiohttp.ClientResponse:
        return await self._session.post(f"{self._base}{path}", data=data, headers=self._headers)


def _sum(scored: _Scored) -> float:
    # A character of several tokens is told as its last one: the same ones for every prompt.
    return sum(token.logprob for token in scored.completion_probabilities)


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
