"""Which tool a request is for, asked of llama.cpp: one request's choice after the other, in slots
of their own, one for each frame."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from reflexarc.steps import ToolSpec
from reflexarc.upstream.embedded import choosing
from reflexarc.upstream.embedded.constrain import parameters_schema
from reflexarc.upstream.embedded.llama import Llama, SchemaError
from reflexarc.upstream.embedded.request import ChatRequest

SCORING_SLOTS = len(choosing.FRAMES)
_REMEMBERED = 1024


class Chooser:
    """Its slots follow those of conversations, from `first_slot` on. `progressed` is called
    whenever llama.cpp has answered."""

    def __init__(self, llama: Llama, first_slot: int, progressed: Callable[[], None]) -> None:
        self._llama = llama
        self._first_slot = first_slot
        self._progressed = progressed
        self._turn = asyncio.Lock()
        self._tenant: bytes | None = None
        self._followed: OrderedDict[tuple[bytes, bytes], bool] = OrderedDict()
        self._scores: OrderedDict[tuple[bytes, str, str], float] = OrderedDict()
        self._cut: tuple[str, list[int]] = ("", [])

    async def chosen(self, request: ChatRequest, tenant: bytes) -> ToolSpec | None:
        """The tool that is going to be called; None for an answer in words. Raises `SchemaError`
        for any tool whose parameters cannot be held to, chosen or not."""
        if not request.tools and request.answer_schema is None:
            return None
        async with self._turn:
            await self._hand_over(tenant)
            for index, tool in enumerate(request.tools):
                where = f"tools[{index}].function.parameters"
                await self._check(tenant, tool.parameters, where)
            if request.answer_schema is not None:
                where = "response_format.json_schema.schema"
                await self._check(tenant, request.answer_schema, where)
            if request.choice == "none":
                return None

            async def score(frame: int, prompt: str, words: str) -> float:
                return await self._score(tenant, frame, prompt, words)

            return await choosing.choose(
                request.messages, request.offered, score, answer=request.choice == "auto"
            )

    async def _hand_over(self, tenant: bytes) -> None:
        """Of what another tenant's requests left in the slots only what is nobody's stays."""
        if self._tenant not in (None, tenant):
            for frame, opening in enumerate(choosing.OPENINGS):
                await self._llama.keep_only(self._first_slot + frame, opening)
            self._cut = ("", [])
        self._tenant = tenant

    async def _check(self, tenant: bytes, schema: Mapping[str, Any], where: str) -> None:
        key = (tenant, msgspec.json.encode(schema))
        known = self._followed.get(key)
        if known is None:
            try:
                known = await self._llama.can_follow(self._first_slot, parameters_schema(schema))
            except ValueError as error:
                raise SchemaError(f"{where}: {error}") from error
            self._progressed()
            _remember(self._followed, key, known)
        if not known:
            raise SchemaError(
                f"{where}: the embedded engine cannot turn this JSON schema into a grammar "
                "(unknown types, references to elsewhere, look-arounds in patterns and `not` are "
                "what it cannot do)"
            )

    async def _score(self, tenant: bytes, frame: int, prompt: str, words: str) -> float:
        key = (tenant, prompt, words)
        known = self._scores.get(key)
        if known is None:
            tokens = await self._tokens_of(words)
            # Each frame has a slot of its own, whose cache holds what the frame begins with.
            known = await self._llama.score(self._first_slot + frame, prompt, tokens)
            self._progressed()
            _remember(self._scores, key, known)
        return known

    async def _tokens_of(self, words: str) -> list[int]:
        if self._cut[0] != words:
            self._cut = (words, await self._llama.tokens(words))
        return self._cut[1]


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    if len(memory) > _REMEMBERED:
        memory.popitem(last=False)
