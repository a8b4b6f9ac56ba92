"""The engine's HTTP side: OpenAI chat completions, whole and streamed, the count of a request's
tokens, models, and `/health`."""

import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web

from reflexarc.steps.errors import ReflexarcError, RequestError
from reflexarc.upstream.embedded.answer import (
    COUNT_PATH,
    ENGINE_HEADER,
    ENGINE_LABEL,
    MODEL,
    Chunks,
    Naming,
    completion,
    counted,
    model,
    models,
)
from reflexarc.upstream.embedded.engine import Answering, BusyError, Engine, summed
from reflexarc.upstream.embedded.request import ChatRequest, UnsupportedError, read_request
from reflexarc.wire.errors import error_body
from reflexarc.wire.sse import data_event

MAX_BODY_BYTES = 4 * 1024 * 1024
RETRY_AFTER_S = 1
_LABELS = {ENGINE_HEADER: ENGINE_LABEL}
_JSON = "application/json"


def application(engine: Engine, wall_clock_s: Callable[[], float] = time.time) -> web.Application:
    """The engine's HTTP face; `wall_clock_s` gives Unix time."""
    desk = _Desk(engine, wall_clock_s)
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_labelled])
    app.router.add_post("/v1/chat/completions", desk.chat)
    app.router.add_post(f"/v1{COUNT_PATH}", desk.count)
    app.router.add_get("/v1/models", desk.models)
    app.router.add_get("/v1/models/{name}", desk.model)
    app.router.add_get("/health", desk.health)
    return app


@web.middleware
async def _labelled(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as error:
        said = f"{request.method} {request.path}: {error.reason}"
        response = _error(error.status, said, f"http_{error.status}")
    if not response.prepared:
        response.headers.update(_LABELS)
    return response


class _Desk:
    def __init__(self, engine: Engine, wall_clock_s: Callable[[], float]) -> None:
        self._engine = engine
        self._wall_clock_s = wall_clock_s
        self._began_s = int(wall_clock_s())

    async def health(self, _: web.Request) -> web.Response:
        if self._engine.stalled:
            return _error(503, "llama.cpp makes no progress", "engine_stalled")
        return web.Response(body=b'{"status":"ok"}', content_type=_JSON)

    async def models(self, _: web.Request) -> web.Response:
        return web.Response(body=models(self._began_s), content_type=_JSON)

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name != MODEL:
            return _error(404, f"there is no model {name!r}; this is {MODEL!r}", "model_not_found")
        return web.Response(body=model(self._began_s), content_type=_JSON)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        async def answer() -> web.StreamResponse:
            asked = read_request(await request.read())
            with self._engine.admitted():
                return await self._answer(asked, request)

        return await _or_error(answer)

    async def count(self, request: web.Request) -> web.StreamResponse:
        async def answer() -> web.StreamResponse:
            asked = read_request(await request.read())
            return web.Response(body=counted(await self._engine.count(asked)), content_type=_JSON)

        return await _or_error(answer)

    async def _answer(self, asked: ChatRequest, request: web.Request) -> web.StreamResponse:
        naming = Naming(secrets.token_hex(12), int(self._wall_clock_s()))
        answering = await self._engine.answer(asked, self._engine.owner(request.headers, asked))
        async with contextlib.aclosing(answering.pieces):
            if asked.stream:
                return await _stream(asked, naming, answering, request)
            written = summed([piece async for piece in answering.pieces], answering)
        return web.Response(body=completion(written, naming), content_type=_JSON)


async def _or_error(answer: Callable[[], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
    try:
        return await answer()
    except BusyError as error:
        response = _error(503, str(error), error.code)
        response.headers["retry-after"] = str(RETRY_AFTER_S)
        return response
    except aiohttp.ClientError as error:
        said = f"llama.cpp cannot be asked: {error}"
        return _error(502, said, "engine_failed")
    except ReflexarcError as error:
        # OpenAI answers a body that does not fit with 400 where our own endpoints say 422.
        status = 400 if error.status == 422 else error.status
        param = error.param if isinstance(error, RequestError | UnsupportedError) else None
        return _error(status, str(error), error.code, param)


async def _stream(
    asked: ChatRequest,
    naming: Naming,
    answering: Answering,
    request: web.Request,
) -> web.StreamResponse:
    """The head waits for the first piece: until then a failure has its own status."""
    chunks = Chunks(naming, answering.tool, include_usage=asked.include_usage)
    seen = [await anext(answering.pieces)]
    response = web.StreamResponse(
        headers={"content-type": "text/event-stream; charset=utf-8", **_LABELS}
    )
    await response.prepare(request)
    await response.write(chunks.opening())
    try:
        if seen[0].content:
            await response.write(chunks.piece(seen[0].content))
        async for piece in answering.pieces:
            seen.append(piece)
            if piece.content:
                await response.write(chunks.piece(piece.content))
        await response.write(chunks.ending(summed(seen, answering)))
    except (ReflexarcError, aiohttp.ClientError) as error:
        code = error.code if isinstance(error, ReflexarcError) else "engine_failed"
        event = error_body(502, str(error), code=code)
        await response.write(data_event(event))
    await response.write_eof()
    return response


def _error(status: int, message: str, code: str, param: str | None = None) -> web.Response:
    body = error_body(status, message, param=param, code=code)
    return web.Response(status=status, body=body, content_type=_JSON)
