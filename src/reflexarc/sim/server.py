"""The simulated System 2 as an ASGI application: OpenAI chat completions after a modelled wait.

Raw ASGI, for any server. Nothing is random and nothing is kept but the prompt cache: the same
requests in the same order give the same answers, ids and latencies.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any, Literal

import msgspec
import xxhash

from reflexarc.sim.policy import Answer, Policy
from reflexarc.sim.prefix import PrefixCache
from reflexarc.sim.profiles import Profile
from reflexarc.sim.wire import (
    chunk,
    completion,
    finish_reason,
    output_tokens,
    stream_deltas,
    tokens_of,
)
from reflexarc.steps import Message, ToolSpec
from reflexarc.steps.errors import InputError, MalformedError, RequestError, TooLargeError
from reflexarc.wire.chat import message_from_chat, tool_from_chat
from reflexarc.wire.errors import error_body
from reflexarc.wire.json import decode_strict

MAX_BODY_BYTES = 32 * 1024 * 1024
_MEMO_MAX_BYTES = 64 * 1024  # larger messages are parsed anew: the memo must stay small

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Request(msgspec.Struct):
    """The fields that change an answer here; others are accepted and have no effect, since the
    policy is scripted (temperature, seed, limits on tokens and the like)."""

    model: str
    messages: list[msgspec.Raw]
    tools: list[msgspec.Raw] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None
    tool_choice: Literal["auto"] | None = None


class _GoneError(Exception):
    """The client went away while it waited."""


class SimulatedSystem2:
    """`time_scale` multiplies every wait (0: none); `model` renames the policy's model."""

    def __init__(
        self,
        policy: Policy,
        profile: Profile,
        *,
        time_scale: float = 1.0,
        model: str | None = None,
        wall_clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._policy = policy
        self._profile = profile
        self._time_scale = time_scale
        self._model = model or policy.model
        self._wall_clock_s = wall_clock_s
        self._cache = PrefixCache(
            profile.cache_block_tokens, profile.cache_min_tokens, profile.cache_capacity_tokens
        )
        # An agent sends the same messages again with every step: parse each once.
        self._message_memo = lru_cache(maxsize=4096)(_message)
        self._tools_memo = lru_cache(maxsize=64)(_tools)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        route = (scope["method"], scope["path"])
        try:
            if route == ("GET", "/v1/models"):
                await _answer(send, 200, msgspec.json.encode(self._models()))
            elif route == ("POST", "/v1/chat/completions"):
                await self._chat(await _body(receive), receive, send, began)
            elif scope["path"] in ("/v1/models", "/v1/chat/completions"):
                message = f"{scope['path']} does not answer {scope['method']}"
                await _answer(send, 405, error_body(405, message, code="method_not_allowed"))
            else:
                message = (
                    f"there is no {scope['path']}; this simulator serves GET /v1/models and "
                    "POST /v1/chat/completions"
                )
                await _answer(send, 404, error_body(404, message, code="not_found"))
        except _GoneError:
            return
        except InputError as error:
            # OpenAI answers a body that does not fit with 400 where our own endpoints say 422.
            status = 400 if error.status == 422 else error.status
            param = error.param if isinstance(error, RequestError) else None
            body = error_body(status, str(error), param=param, code=error.code)
            await _answer(send, status, body)

    async def _chat(self, body: bytes, receive: Receive, send: Send, began: float) -> None:
        request, messages, tools = self._read(body)
        answer = self._policy.answer(messages, tools)
        prompt = b"".join(bytes(part) for part in (*(request.tools or ()), *request.messages))
        usage = self._usage(prompt, answer)
        seed = xxhash.xxh3_64_hexdigest(body)
        first_ms = self._profile.first_token_ms(
            usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]
        )
        writing_ms = usage["completion_tokens"] / self._profile.output_tokens_per_s * 1e3
        headers = [
            (b"x-request-id", f"req_{seed}".encode()),
            (b"server-timing", f"first;dur={first_ms:.1f}, output;dur={writing_ms:.1f}".encode()),
        ]
        wait = _Wait(receive, began, self._time_scale)
        await wait.until_ms(first_ms)
        # Only now is the prompt read: another that came meanwhile did not find it.
        self._cache.remember(prompt)
        if request.stream:
            options = request.stream_options or _StreamOptions()
            await self._stream(
                answer, seed, usage, options, wait, send, headers, first_ms, writing_ms
            )
            return
        await wait.until_ms(first_ms + writing_ms)
        created_s = int(self._wall_clock_s())
        whole = completion(answer, seed, self._model, created_s, usage)
        await _answer(send, 200, msgspec.json.encode(whole), headers)

    async def _stream(
        self,
        answer: Answer,
        seed: str,
        usage: dict[str, Any],
        options: _StreamOptions,
        wait: "_Wait",
        send: Send,
        headers: list[tuple[bytes, bytes]],
        first_ms: float,
        writing_ms: float,
    ) -> None:
        created_s = int(self._wall_clock_s())
        content_type = (b"content-type", b"text/event-stream; charset=utf-8")
        await send(
            {"type": "http.response.start", "status": 200, "headers": [content_type, *headers]}
        )
        deltas = list(stream_deltas(answer, seed))
        total = sum(tokens for tokens, _ in deltas) or 1
        written = 0
        for tokens, delta in deltas:
            written += tokens
            await wait.until_ms(first_ms + writing_ms * written / total)
            event = chunk(seed, self._model, created_s, delta, include_usage=options.include_usage)
            await send({"type": "http.response.body", "body": event, "more_body": True})
        end = chunk(
            seed,
            self._model,
            created_s,
            {},
            finish=finish_reason(answer),
            include_usage=options.include_usage,
        )
        if options.include_usage:
            end += chunk(seed, self._model, created_s, None, usage=usage, include_usage=True)
        await send({"type": "http.response.body", "body": end + b"data: [DONE]\n\n"})

    def _read(self, body: bytes) -> tuple[_Request, list[Message], tuple[ToolSpec, ...]]:
        try:
            request = msgspec.json.decode(body, type=_Request)
        except msgspec.ValidationError as error:
            raise RequestError(f"the body does not fit a chat request: {error}") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise MalformedError(f"the body is not JSON: {error}") from error
        if request.model != self._model:
            raise _UnknownModelError(
                f"there is no model {request.model!r}; this simulator has {self._model!r}"
            )
        if not request.messages:
            raise RequestError("messages must hold at least one message", "messages")
        messages = [
            (self._message_memo if len(raw) <= _MEMO_MAX_BYTES else _message)(raw, index)
            for index, raw in enumerate(map(bytes, request.messages))
        ]
        return request, messages, self._tools_memo(tuple(map(bytes, request.tools or ())))

    def _usage(self, prompt: bytes, answer: Answer) -> dict[str, Any]:
        prompt_tokens = tokens_of(len(prompt))
        written = output_tokens(answer)
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": written,
            "total_tokens": prompt_tokens + written,
            "prompt_tokens_details": {"cached_tokens": self._cache.lookup(prompt)},
        }

    def _models(self) -> dict[str, Any]:
        created_s = int(self._wall_clock_s())
        model = {"id": self._model, "object": "model", "created": created_s}
        return {"object": "list", "data": [{**model, "owned_by": "reflexarc-sim"}]}


class _UnknownModelError(InputError):
    code = "model_not_found"
    status = 404


class _Wait:
    """Waits until so many scaled ms after the request came, or raises where the client left."""

    def __init__(self, receive: Receive, began: float, time_scale: float) -> None:
        self._receive = receive
        self._began = began
        self._scale = time_scale
        self._gone: asyncio.Future[MutableMapping[str, Any]] | None = None

    async def until_ms(self, latency_ms: float) -> None:
        left_s = self._began + latency_ms * self._scale / 1e3 - time.perf_counter()
        if left_s <= 0:
            return
        if self._gone is None:
            self._gone = asyncio.ensure_future(self._receive())
        done, _ = await asyncio.wait({self._gone}, timeout=left_s)
        if done:
            raise _GoneError


def _message(raw: bytes, index: int) -> Message:
    path = f"messages[{index}]"
    return message_from_chat(decode_strict(raw, path), path)


def _tools(raws: tuple[bytes, ...]) -> tuple[ToolSpec, ...]:
    return tuple(
        tool_from_chat(decode_strict(raw, f"tools[{i}]"), f"tools[{i}]")
        for i, raw in enumerate(raws)
    )


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _GoneError
        part: bytes = event.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise TooLargeError(f"the body is over the limit of {MAX_BODY_BYTES} bytes")
        if not event.get("more_body"):
            return b"".join(parts)


async def _answer(
    send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    given = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *(headers or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
