"""Between the HTTP side and llama.cpp: admits, chooses, writes in the session's slot, counts."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

from reflexarc.steps import ToolSpec
from reflexarc.steps.errors import InputError, UpstreamError
from reflexarc.upstream.embedded.answer import Usage, Written
from reflexarc.upstream.embedded.constrain import narrowed, parameters_schema
from reflexarc.upstream.embedded.keeping import Keeping
from reflexarc.upstream.embedded.llama import Llama, Piece
from reflexarc.upstream.embedded.owners import Owner, owner_of
from reflexarc.upstream.embedded.pins import Pins
from reflexarc.upstream.embedded.prompt import END, call_opening, rendered
from reflexarc.upstream.embedded.request import (
    DEFAULT_ANSWER_TOKENS,
    DEFAULT_CALL_TOKENS,
    ChatRequest,
)
from reflexarc.upstream.embedded.scoring import SCORING_SLOTS, Chooser

MAX_WAITING = 16
STALLED_S = 600.0
"""Longer than full contexts take to be read on a slow core."""


class BusyError(InputError):
    """Too many requests wait already."""

    code = "engine_busy"
    status = 503


class Answering(NamedTuple):
    """What is being written: the call's tool, None for words; the tokens of the call's opening,
    which the engine writes itself; the pieces."""

    tool: ToolSpec | None
    opening_tokens: int
    pieces: AsyncGenerator[Piece]


def slots_needed(chat_slots: int) -> int:
    """Of llama.cpp: those of conversations, and those in which tools are chosen."""
    return chat_slots + SCORING_SLOTS


class Engine:
    """Requests in all slots at once, one after the other in each; `MAX_WAITING` beyond as many as
    there are slots, more are refused. `key` tells sessions and tenants apart; `clock_s` is
    monotonic."""

    def __init__(
        self, llama: Llama, pins: Pins, keeping: Keeping, key: bytes, clock_s: Callable[[], float]
    ) -> None:
        self._llama = llama
        self._pins = pins
        self._keeping = keeping
        self._key = key
        self._clock_s = clock_s
        self._progress_s = 0.0
        self._admitted = 0
        self._chooser = Chooser(llama, len(pins.all), self._progressed)

    @contextlib.contextmanager
    def admitted(self) -> Generator[None]:
        """Raises `BusyError`."""
        if self._admitted >= MAX_WAITING + len(self._pins.all):
            raise BusyError(f"{MAX_WAITING} requests wait already; try again in a second")
        if not self._admitted:
            self._progressed()
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    @property
    def stalled(self) -> bool:
        """Whether llama.cpp has written nothing for `STALLED_S`, though it has work."""
        return self._admitted > 0 and self._clock_s() - self._progress_s > STALLED_S

    def owner(self, headers: Mapping[str, str], request: ChatRequest) -> Owner:
        return owner_of(headers, request, self._key)

    async def answer(self, request: ChatRequest, owner: Owner) -> Answering:
        """Raises `SchemaError`."""
        tool = await self._chooser.chosen(request, owner.tenant)
        prompt = rendered(request.messages, request.tools)
        if tool is None:
            schema = None if request.answer_schema is None else narrowed(request.answer_schema)
            limit = request.max_tokens or DEFAULT_ANSWER_TOKENS
            stop = (END, *request.stop)
            opening = ""
        else:
            schema = parameters_schema(tool.parameters)
            limit = request.max_tokens or DEFAULT_CALL_TOKENS
            stop = ()
            opening = call_opening(tool.name)
        opening_tokens = len(await self._llama.tokens(opening)) if opening else 0
        pieces = self._written(prompt, opening, limit, request.sampling, stop, schema, owner)
        return Answering(tool, opening_tokens, pieces)

    async def count(self, request: ChatRequest) -> int:
        """Tokens of the prompt that the request makes: what `usage` is going to tell."""
        prompt = rendered(request.messages, request.tools)
        return len(await self._llama.tokens(prompt, whole=True))

    async def _written(
        self,
        prompt: str,
        opening: str,
        limit: int,
        sampling: Mapping[str, float],
        stop: Sequence[str],
        schema: Mapping[str, Any] | None,
        owner: Owner,
    ) -> AsyncGenerator[Piece]:
        async with self._pins.taken(owner, prompt) as pin:
            await self._keeping.move_in(pin, prompt)
            # Until its end is told it may hold any part of this.
            pin.changed, pin.tokens, pin.prompt = True, None, prompt
            pieces = self._llama.write(pin.slot, prompt + opening, limit, sampling, stop, schema)
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    self._progressed()
                    if piece.stop:
                        pin.tokens = piece.tokens_evaluated + piece.tokens_predicted
                    yield piece

    def _progressed(self) -> None:
        self._progress_s = self._clock_s()


def summed(pieces: list[Piece], answering: Answering) -> Written:
    """The answer that these pieces make up. Raises `UpstreamError` without the last of them."""
    if not pieces or not pieces[-1].stop:
        raise UpstreamError("the engine broke off inside its answer")
    last = pieces[-1]
    prompt_tokens = last.tokens_evaluated - answering.opening_tokens
    usage = Usage(
        prompt_tokens=prompt_tokens,
        cached_tokens=min(last.cached_tokens, prompt_tokens),
        completion_tokens=last.tokens_predicted,
        accepted_tokens=last.accepted_tokens,
        rejected_tokens=last.rejected_tokens,
    )
    text = "".join(piece.content for piece in pieces)
    return Written(text, answering.tool, last.stop_type == "limit", usage)
