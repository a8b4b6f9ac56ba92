"""The fault upstream: a server of all four dialects on a real port, strict in what it takes."""

import asyncio
import json
import re
import time
from collections import deque
from email.utils import formatdate
from typing import Any, cast

import httptools
import msgspec

from reflexarc.sim.faulty import (
    chat_answers,
    chat_checks,
    gemini_answers,
    gemini_checks,
    messages_answers,
    messages_checks,
    responses_answers,
    responses_checks,
)
from reflexarc.sim.faulty.caching import cached
from reflexarc.sim.faulty.delivery import Wire, events
from reflexarc.sim.faulty.script import Asked, Frame, Said, Words, answer, signed, words_of
from reflexarc.sim.prefix import PrefixCache
from reflexarc.steps.errors import InputError, RequestError
from reflexarc.wire.json import decode_strict

MODELS = ("faulty-1", "faulty-2")
MISSING = "missing-model"
"""A model that there is not; any other name is answered for."""
_VERBS = re.compile(r".*/models/(?P<model>.+):(?P<verb>\w+)$")
_HTML = "<html><head><title>{0}</title></head><body><h1>{0} Bad Gateway</h1></body></html>"
_UNITS_S = {"retryms": 1e-3}
_PREFIXES = {"chat": "call_", "responses": "call_", "messages": "toolu_", "gemini": "call_"}
_ANSWERS: dict[str, Any] = {
    "chat": chat_answers,
    "responses": responses_answers,
    "messages": messages_answers,
    "gemini": gemini_answers,
}


class Received(msgspec.Struct):
    """A request as it came. `refusal` says what was wrong with it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    dialect: str = ""
    refusal: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FaultyUpstream:
    """`url` is the base with `/v1` once it is started, `gemini_url` that with `/v1beta`. `key`, if
    given, must come with each request. `left` counts the clients that went before their end.

    `script` holds words for the next requests to a model, one entry each; `usual` those for all
    others. They count before what a request itself says. `at_work` requests are being answered;
    while `gate` is not set none is answered on. `prompts`: a cache that usage is told by."""

    def __init__(self, key: str | None = None, prompts: PrefixCache | None = None) -> None:
        self.received: list[Received] = []
        self.left = 0
        self.at_work = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.port = 0
        self.script: deque[str] = deque()
        self.usual = ""
        self.prompts = prompts
        self._key = key
        self._number = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.base}/v1"

    @property
    def gemini_url(self) -> str:
        return f"{self.base}/v1beta"

    @property
    def refusals(self) -> list[str]:
        return [one.refusal for one in self.received if one.refusal]

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve_forever(self) -> None:
        if self._server is not None:
            await self._server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            while (request := await _read(reader)) is not None:
                if not await self._answered(request, reader, writer):
                    return
        except (ConnectionError, httptools.HttpParserError, asyncio.CancelledError):
            self.left += task is not None and not task.cancelling()
        finally:
            writer.close()

    async def _answered(
        self, request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        answering = asyncio.ensure_future(self._answer(request, writer))
        gone = asyncio.ensure_future(reader.read(1))
        self.at_work += 1
        try:
            await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not answering.done():
                self.left += 1
                return False
            await answering
            if gone.done():
                return False
        finally:
            self.at_work -= 1
            for one in (answering, gone):
                one.cancel()
            await asyncio.gather(answering, gone, return_exceptions=True)
        return not writer.transport.is_closing()

    async def _answer(self, request: Received, writer: asyncio.StreamWriter) -> None:
        self.received.append(request)
        dialect, asked, body = "", None, cast("dict[str, Any]", {})
        words = words_of(request.headers, None)
        wire = Wire(writer, words)
        try:
            dialect = request.dialect = _dialect(request)
            self._admit(request)
            if request.method == "GET":
                await wire.whole(_encoded(_models(dialect)))
                return
            body = cast("dict[str, Any]", decode_strict(request.body))
            if dialect == "gemini":
                body = gemini_checks.spelt(body)
            counting = request.path.endswith(("count_tokens", ":countTokens"))
            asked = _asked(dialect, request, body, counting=counting)
            own = self.usual if counting or not self.script else self.script.popleft()
            words = words_of(request.headers, asked, own)
            wire = Wire(writer, words)
            if counting:
                await wire.whole(_encoded(_count(dialect, body)))
                return
        except _StatusError as error:
            await self._tell_error(wire, words, dialect, error.status, str(error), None)
            return
        except InputError as error:
            request.refusal = str(error)
            param = error.param if isinstance(error, RequestError) else None
            await self._tell_error(wire, words, dialect, 400, str(error), param)
            return
        await self.gate.wait()
        if "toolfail" in words:
            failed = _tool_use_failed(asked, readable="unreadable" not in words)
            await wire.error(400, _encoded(failed), "application/json")
        elif "redirect" in words:
            await wire.error(307, b"", "text/plain", ("location", f"{self.base}/elsewhere"))
        elif "error" in words:
            status = words.count("error", 500)
            await self._tell_error(wire, words, dialect, status, "Told to fail.", None)
        elif "html" in words:
            status = words.count("html", 502)
            await wire.error(status, _HTML.format(status).encode(), "text/html")
        else:
            self._number += 1
            said = answer(asked, words, self._number, _PREFIXES[dialect])
            if self.prompts is not None:
                said = cached(self.prompts, body, said)
            await self._tell(wire, words, dialect, asked, said)

    async def _tell(self, wire: Wire, words: Words, dialect: str, asked: Asked, said: Said) -> None:
        form = _ANSWERS[dialect]
        failing = words.count("status", 503)
        if not asked.stream or "whole" in words:
            body: Any = form.whole(said, words)
            if "error_in_200" in words:
                body = form.error_frame(failing, "Told to fail.").data
                body = body.get("response", body) if dialect == "responses" else body
            await wire.whole(_encoded(body))
            return
        frames: list[Frame] = form.frames(said, asked, words)
        for word, least in (("error_first", 0), ("error_after", len(frames) // 2)):
            if word in words:
                at = min(words.count(word, least), len(frames))
                failed = form.error_frame(failing, "Told to fail.")
                if dialect == "responses":
                    failed.data["sequence_number"] = at
                frames = [*frames[:at], failed]
        await wire.stream(events(frames, words))

    async def _tell_error(
        self,
        wire: Wire,
        words: Words,
        dialect: str,
        status: int,
        message: str,
        param: str | None,
    ) -> None:
        hints = [name for name in ("retry", "retrydate", "retryms") if name in words]
        retry_s = words.number(hints[0]) * _UNITS_S.get(hints[0], 1.0) if hints else None
        form = _ANSWERS["chat" if dialect in ("", "responses") else dialect]
        within = retry_s if "inbody" in words or dialect == "gemini" else None
        headers: list[tuple[str, str]] = []
        if retry_s is not None and "inbody" not in words:
            headers.append(_hint(hints[0], retry_s))
        body = form.error(status, message, within, param)
        await wire.error(status, _encoded(body), "application/json", *headers)

    def _admit(self, request: Received) -> None:
        if self._key is None:
            return
        given = request.headers
        found = given.get("x-api-key") or given.get("x-goog-api-key")
        found = found or given.get("authorization", "").removeprefix("Bearer ")
        if found != self._key:
            raise _StatusError(401, "The API key is wrong.")


def _hint(word: str, retry_s: float) -> tuple[str, str]:
    if word == "retrydate":
        return "retry-after", formatdate(time.time() + retry_s, usegmt=True)
    if word == "retryms":
        return "retry-after-ms", f"{retry_s * 1e3:.0f}"
    return "retry-after", f"{retry_s:g}"


def _tool_use_failed(asked: Asked, *, readable: bool) -> dict[str, Any]:
    """As Groq says that what its model wrote is no call it can read: the text itself is beside."""
    name = asked.tools[0][0] if asked.tools else "nothing"
    text = f'<function={name}>{{"city": "Oslo"}}</function>'
    if not readable:
        text = f"I would call {name} for Oslo"
    said = "Failed to call a function. Please adjust your prompt."
    error = {"message": said, "type": "invalid_request_error", "code": "tool_use_failed"}
    return {"error": {**error, "failed_generation": text}}


class _StatusError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _dialect(request: Received) -> str:
    path = request.path.partition("?")[0]
    if request.method == "GET":
        if not re.search(r"/models(/.*)?$", path):
            raise _StatusError(404, f"There is nothing at {path}.")
        if "v1beta" in path or "x-goog-api-key" in request.headers:
            return "gemini"
        return "messages" if "anthropic-version" in request.headers else "chat"
    for ending, dialect in (
        ("/chat/completions", "chat"),
        ("/responses", "responses"),
        ("/messages", "messages"),
        ("/messages/count_tokens", "messages"),
    ):
        if path.endswith(ending):
            return dialect
    if _VERBS.fullmatch(path):
        return "gemini"
    raise _StatusError(404, f"There is nothing at {path}.")


def _asked(dialect: str, request: Received, body: Any, *, counting: bool) -> Asked:
    """Raises `RequestError` for what this dialect's API refuses."""
    if not isinstance(body, dict):
        raise RequestError("the body must be an object")
    given = cast("dict[str, Any]", body)
    if dialect == "chat":
        chat_checks.check(given)
        asked = chat_answers.read(given)
    elif dialect == "responses":
        responses_checks.check(given, signed)
        asked = responses_answers.read(given)
    elif dialect == "messages":
        if "anthropic-version" not in request.headers:
            raise RequestError("anthropic-version: header is required", param="anthropic-version")
        messages_checks.check(given, signed, counting=counting)
        asked = messages_answers.read(given)
    else:
        path, _, query = request.path.partition("?")
        found = _VERBS.fullmatch(path)
        verb = found["verb"] if found else ""
        if verb not in ("generateContent", "streamGenerateContent", "countTokens"):
            raise _StatusError(404, f"There is no {verb}.")
        if verb == "streamGenerateContent" and "alt=sse" not in query:
            raise RequestError("only alt=sse is served here", param="alt")
        if counting:
            given = cast("dict[str, Any]", given.get("generateContentRequest", given))
        gemini_checks.check(given, signed)
        model = found["model"] if found else ""
        asked = gemini_answers.read(given, model, stream=verb == "streamGenerateContent")
    if asked.model == MISSING:
        raise _StatusError(404, f"The model {MISSING} does not exist.")
    return asked


def _count(dialect: str, body: dict[str, Any]) -> dict[str, Any]:
    tokens = max(1, len(json.dumps(body)) // 4)
    return {"totalTokens": tokens} if dialect == "gemini" else {"input_tokens": tokens}


def _models(dialect: str) -> dict[str, Any]:
    if dialect == "gemini":
        actions = ["generateContent", "countTokens"]
        listed = [
            {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": actions}
            for name in MODELS
        ]
        return {"models": listed}
    if dialect == "messages":
        listed = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "2024-01-01T00:00:00Z",
            }
            for name in MODELS
        ]
        return {"data": listed, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
    listed = [{"id": n, "object": "model", "created": 1, "owned_by": "faulty"} for n in MODELS]
    return {"object": "list", "data": listed}


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class _Reading:
    def __init__(self) -> None:
        self.complete = False
        self.target = b""
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        self.complete = True


async def _read(reader: asyncio.StreamReader) -> Received | None:
    """None where the connection ended between requests."""
    reading = _Reading()
    parser = httptools.HttpRequestParser(reading)
    while not reading.complete:
        chunk = await reader.read(65536)
        if not chunk:
            return None
        parser.feed_data(chunk)
    method = parser.get_method().decode()
    target = reading.target.decode("latin-1")
    return Received(method, target, reading.headers, b"".join(reading.body))
