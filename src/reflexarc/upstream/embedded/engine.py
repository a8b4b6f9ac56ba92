"""One request at a time: chooses, writes, and counts. Between the HTTP side and llama.cpp."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import msgspec

from reflexarc.steps import ToolSpec
from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.upstream.embedded import choosing
from reflexarc.upstream.embedded.answer import Usage, Written
from reflexarc.upstream.embedded.constrain import narrowed, parameters_schema
from reflexarc.upstream.embedded.llama import CHAT_SLOT, Llama, Piece, SchemaError
from reflexarc.upstream.embedded.prompt import END, call_opening, rendered
from reflexarc.upstream.embedded.request import (
    DEFAULT_ANSWER_TOKENS,
    DEFAULT_CALL_TOKENS,
    ChatRequest,
)

MAX_WAITING = 16
STALLED_S = 600.0
"""Longer than a full context takes to be read on a slow core."""

_REMEMBERED = 1024
SLOTS = CHAT_SLOT + 1 + len(choosing.FRAMES)


class BusyError(InputError):
    """Too many requests wait already."""

    code = "engine_busy"
    status = 503


class Engine:
    """`waiting` requests beyond the one being answered; more than `MAX_WAITING` are refused."""

    def __init__(self, llama: Llama, clock_s: Callable[[], float]) -> None:
        self._llama = llama
        self._clock_s = clock_s
        self._progress_s = 0.0
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._followed: OrderedDict[bytes, bool] = OrderedDict()
        self._cut: tuple[str, list[int]] = ("", [])
        self._scores: OrderedDict[tuple[str, str], float] = OrderedDict()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Raises `BusyError`."""
        if self._waiting >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING} requests wait already; try again in a second")
        self._waiting += 1
        try:
            async with self._turn:
                self._progress_s = self._clock_s()
                yield
        finally:
            self._waiting -= 1

    @property
    def stalled(self) -> bool:
        """Whether llama.cpp has written nothing for `STALLED_S`, though it has work."""
        return self._turn.locked() and self._clock_s() - self._progress_s > STALLED_S

    async def chosen(self, request: ChatRequest) -> ToolSpec | None:
        """The tool that is going to be called; None for an answer in words. Raises `SchemaError`
        for any tool whose parameters cannot be held to, chosen or not."""
        for index, tool in enumerate(request.tools):
            await self._check(tool.parameters, f"tools[{index}].function.parameters")
        if request.answer_schema is not None:
            await self._check(request.answer_schema, "response_format.json_schema.schema")
        if request.choice == "none":
            return None
        return await choosing.choose(
            request.messages, request.offered, self._score, answer=request.choice == "auto"
        )

    async def write(self, request: ChatRequest, tool: ToolSpec | None) -> AsyncGenerator[Piece]:
        """Pieces of the answer, or of the arguments of a call of `tool`."""
        prompt = rendered(request.messages, request.tools)
        if tool is None:
            schema = None if request.answer_schema is None else narrowed(request.answer_schema)
            limit = request.max_tokens or DEFAULT_ANSWER_TOKENS
            stop = (END, *request.stop)
        else:
            prompt += call_opening(tool.name)
            schema = parameters_schema(tool.parameters)
            limit = request.max_tokens or DEFAULT_CALL_TOKENS
            stop = ()
        pieces = self._llama.write(prompt, limit, request.sampling, stop, schema)
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                self._progress_s = self._clock_s()
                yield piece

    async def _check(self, schema: Mapping[str, Any], where: str) -> None:
        key = msgspec.json.encode(schema)
        known = self._followed.get(key)
        if known is None:
            try:
                known = await self._llama.can_follow(parameters_schema(schema))
            except ValueError as error:
                raise SchemaError(f"{where}: {error}") from error
            _remember(self._followed, key, known)
        if not known:
            raise SchemaError(
                f"{where}: the embedded engine cannot turn this JSON schema into a grammar "
                "(unknown types, references to elsewhere, look-arounds in patterns and `not` are "
                "what it cannot do)"
            )

    async def _score(self, frame: int, prompt: str, words: str) -> float:
        known = self._scores.get((prompt, words))
        if known is None:
            tokens = await self._tokens_of(words)
            # Each frame has a slot of its own, whose cache holds what the frame begins with.
            known = await self._llama.score(CHAT_SLOT + 1 + frame, prompt, tokens)
            self._progress_s = self._clock_s()
            _remember(self._scores, (prompt, words), known)
        return known

    async def _tokens_of(self, words: str) -> list[int]:
        if self._cut[0] != words:
            self._cut = (words, await self._llama.tokens(words))
        return self._cut[1]


def summed(pieces: list[Piece], tool: ToolSpec | None) -> Written:
    """The answer that these pieces make up. Raises `UpstreamError` without the last of them."""
    if not pieces or not pieces[-1].stop:
        raise UpstreamError("the engine broke off inside its answer")
    last = pieces[-1]
    usage = Usage(
        prompt_tokens=last.tokens_evaluated,
        cached_tokens=min(last.cached_tokens, last.tokens_evaluated),
        completion_tokens=last.tokens_predicted,
    )
    text = "".join(piece.content for piece in pieces)
    return Written(text, tool, last.stop_type == "limit", usage)


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)
