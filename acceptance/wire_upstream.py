"""A scripted upstream on a real port that speaks all four dialects, for real clients.

What it does is told by a word in brackets among the user's words, `[parallel]` say: see `Plays`.
A request that its provider would refuse is answered with 400, so that a wrong conversion shows.
"""

import asyncio
import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiohttp import web

from acceptance import wire_upstream_errors as errors
from acceptance import wire_upstream_writing as writing
from acceptance.wire_upstream_reading import Asked, RefusedError, read, to_standard
from acceptance.wire_upstream_writing import Answer, Part

KEY = "sk-a-key-of-the-client"
MODEL = "a-model"
SAID = "Grüße aus 東京\u2028and on, \u0085 with a 🎈 at the end."
THOUGHT = "They ask for the weather. I look it up: naïve, but “right”."
COUNTED = 4321
RETRY_S = 1.0
CITIES = ("Paris", "São Paulo")
_play = re.compile(r"\[([a-z]+|\d{3})(?: ([\w-]+))?\]")


class Status(NamedTuple):
    """An error instead of an answer."""

    status: int
    retry_s: float | None = None


class Seen(NamedTuple):
    """A request as it came, at a time of the monotonic clock."""

    dialect: str
    at_s: float
    asked: Asked


def signature(dialect: str) -> str:
    return base64.b64encode(b"\xfb\xff\xfe" + f"signed by {dialect}".encode()).decode()


def call(dialect: str, city: str) -> Part:
    """Some of Gemini's models give their calls no ids."""
    named = {"chat": "call_", "responses": "call_r_", "messages": "toolu_01", "gemini": ""}
    digest = hashlib.sha256(city.encode()).hexdigest()[:16]
    identity = f"{named[dialect]}{digest}" if named[dialect] else ""
    arguments = json.dumps({"city": city, "days": 2}, ensure_ascii=False, separators=(",", ":"))
    return Part("call", arguments, identity, "get_weather")


class Plays:
    """What is answered. `seen` by the second word in the brackets, where there is one."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Seen]] = {}

    def answer(self, asked: Asked) -> Answer | Status:
        found = _play.search(asked.words)
        if found is None:
            raise RefusedError(f"no play is named in {asked.words[:80]!r}")
        play, tag = found.group(1), found.group(2) or ""
        before = self.seen.setdefault(tag, [])
        before.append(Seen(asked.dialect, time.monotonic(), asked))
        if play.isdigit():
            first = len(before) == 1 or play != "429"
            return (
                Status(int(play), RETRY_S if play == "429" else None) if first else self._say(asked)
            )
        played: Callable[[Asked], Answer | Status] | None = getattr(self, f"_{play}", None)
        if played is None:
            raise RefusedError(f"there is no play {play!r}")
        return played(asked)

    def _say(self, asked: Asked) -> Answer:
        return Answer(asked.model, (Part("text", SAID),))

    def _long(self, asked: Asked) -> Answer:
        return Answer(asked.model, (Part("text", SAID),), length=True)

    def _cut(self, asked: Asked) -> Answer:
        return Answer(asked.model, (Part("text", SAID),), cut=True)

    def _fails(self, asked: Asked) -> Answer:
        return Answer(asked.model, (Part("text", SAID),), fails=True)

    def _overloaded(self, asked: Asked) -> Status:
        return Status(errors.overloaded_status(asked.dialect))

    def _picture(self, asked: Asked) -> Answer:
        if not asked.images:
            raise RefusedError("there is no image")
        told = ", ".join(told_image(kind, data) for kind, data in asked.images)
        return Answer(asked.model, (Part("text", told),))

    def _system(self, asked: Asked) -> Answer:
        return Answer(asked.model, (Part("text", f"told: {asked.system}"),))

    def _tool(self, asked: Asked) -> Answer:
        return self._looked_up(asked, CITIES[:1])

    def _parallel(self, asked: Asked) -> Answer:
        return self._looked_up(asked, CITIES)

    def _looked_up(self, asked: Asked, cities: tuple[str, ...]) -> Answer:
        if "get_weather" not in asked.tools:
            raise RefusedError(f"the tool is missing: {asked.tools}")
        if not asked.results:
            parts = [Part("text", "I look."), *(call(asked.dialect, city) for city in cities)]
            return Answer(asked.model, tuple(parts))
        made = [call(asked.dialect, city) for city in cities]
        if len(asked.calls) != len(made):
            raise RefusedError(f"{len(made)} calls came back as {asked.calls}")
        for was, now in zip(made, asked.calls, strict=True):
            same = (was.name, json.loads(was.text)) == (now.name, json.loads(now.text))
            if not same or (was.id and was.id != now.id):
                raise RefusedError(f"a call came back as {now}, it was {was}")
        results = {result.id: _plain(result.text) for result in asked.results}
        told = "; ".join(
            f"{json.loads(made.text)['city']}: {results[made.id]}" for made in asked.calls
        )
        return Answer(asked.model, (Part("text", told),))

    def _think(self, asked: Asked) -> Answer:
        """Thinking and a call; then the thinking must be there again, signed as it was."""
        answer = self._looked_up(asked, CITIES[:1])
        signed = "" if asked.dialect == "chat" else signature(asked.dialect)
        if asked.results:
            text = "call get_weather" if asked.dialect == "gemini" else THOUGHT
            thoughts = asked.thoughts
            if asked.dialect == "gemini":  # where clients write bytes again, in either alphabet
                thoughts = [(said, to_standard(given)) for said, given in thoughts]
            if (text, signed) not in thoughts:
                raise RefusedError(f"the thinking is not there as it was: {asked.thoughts}")
            return answer
        made = [part for part in answer.parts if part.kind == "call"]
        if asked.dialect == "gemini":  # there it is the call that is signed
            made[0] = Part("call", made[0].text, made[0].id, made[0].name, signed)
            signed = ""
        return Answer(asked.model, (Part("thinking", THOUGHT, signature=signed), *made))


def told_image(kind: str, data: bytes) -> str:
    return f"{kind} of {len(data)} bytes, {hashlib.sha256(data).hexdigest()[:12]}"


def _plain(text: str) -> str:
    """A result's words: Gemini has them in an object."""
    try:
        value: Any = json.loads(text)
    except json.JSONDecodeError:
        return text
    if isinstance(value, dict) and len(value) == 1:  # pyright: ignore[reportUnknownArgumentType] - of anything
        (inner,) = value.values()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return inner if isinstance(inner, str) else text
    return text


class Server:
    """`base` is its address; dialects lie under `/v1`, Gemini under `/v1beta`."""

    def __init__(self, plays: Plays) -> None:
        self.plays = plays
        self.port = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._ask("chat"))
        app.router.add_post("/v1/responses", self._ask("responses"))
        app.router.add_post("/v1/messages", self._ask("messages"))
        app.router.add_post("/v1/messages/count_tokens", self._count("messages"))
        app.router.add_post("/v1beta/models/{name}:generateContent", self._ask("gemini"))
        app.router.add_post("/v1beta/models/{name}:streamGenerateContent", self._ask("gemini"))
        app.router.add_post("/v1beta/models/{name}:countTokens", self._count("gemini"))
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1beta/models", self._models)
        return app

    def _ask(self, dialect: str) -> Callable[[web.Request], Any]:
        async def asked(request: web.Request) -> web.StreamResponse:
            if _key_of(request, dialect) != KEY:
                return _error(dialect, 401, "the key is wrong")
            stream = request.path.endswith(":streamGenerateContent")
            try:
                body = json.loads(await request.read())
                if dialect == "messages" and "thread" in body:
                    return web.json_response(errors.no_threads(), status=400)
                told = read(dialect, body, request.match_info.get("name", ""), stream)
                answer = self.plays.answer(told)
            except (RefusedError, ValueError) as error:
                return _error(dialect, 400, str(error))
            if isinstance(answer, Status):
                said = f"the upstream says {answer.status}"
                return _error(dialect, answer.status, said, answer.retry_s)
            if not told.stream:
                return web.json_response(writing.whole(dialect, answer), headers=_id(dialect))
            return await _stream(request, dialect, answer)

        return asked

    def _count(self, dialect: str) -> Callable[[web.Request], Any]:
        async def counted(request: web.Request) -> web.StreamResponse:
            if _key_of(request, dialect) != KEY:
                return _error(dialect, 401, "the key is wrong")
            body = json.loads(await request.read())
            if dialect == "gemini":
                fits = "contents" in body or "generateContentRequest" in body
                told = {"totalTokens": COUNTED}
            else:
                fits, told = (
                    "messages" in body and "max_tokens" not in body,
                    {"input_tokens": COUNTED},
                )
            return (
                web.json_response(told)
                if fits
                else _error(dialect, 400, f"not for counting: {body}")
            )

        return counted

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if "beta" in request.path:
            listed: dict[str, Any] = {"models": [{"name": f"models/{MODEL}", "displayName": MODEL}]}
        elif "anthropic-version" in request.headers:
            model = {"type": "model", "id": MODEL, "display_name": MODEL}
            model["created_at"] = "2026-01-01T00:00:00Z"
            listed = {"data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL}
        else:
            model = {"id": MODEL, "object": "model", "created": 1, "owned_by": "us"}
            listed = {"object": "list", "data": [model]}
        return web.json_response(listed)


def _key_of(request: web.Request, dialect: str) -> str:
    name = {"messages": "x-api-key", "gemini": "x-goog-api-key"}.get(dialect, "authorization")
    bearer = "" if dialect == "gemini" else request.headers.get("authorization", "")
    told = request.headers.get(name, "") if name != "authorization" else ""
    return told or bearer.removeprefix("Bearer ")


def _id(dialect: str) -> dict[str, str]:
    name = "request-id" if dialect == "messages" else "x-request-id"
    return {} if dialect == "gemini" else {name: "req_upstream_1"}


def _error(
    dialect: str, status: int, message: str, retry_s: float | None = None
) -> web.StreamResponse:
    headers = _id(dialect)
    if retry_s is not None and dialect != "gemini":
        headers["retry-after"] = f"{retry_s:g}"
    body = errors.error(dialect, status, message, retry_s)
    return web.json_response(body, status=status, headers=headers)


async def _stream(request: web.Request, dialect: str, answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream", **_id(dialect)})
    await response.prepare(request)
    for frame in writing.frames(dialect, answer):
        # not at the ends of events, nor of characters
        for at in range(0, len(frame), 61):
            await response.write(frame[at : at + 61])
    await response.write_eof()
    return response


@contextmanager
def upstream() -> Generator[Server]:
    """One that runs, on a thread of its own."""
    server = Server(Plays())
    loop = asyncio.new_event_loop()
    up = threading.Event()
    runner = web.AppRunner(server.application(), access_log=None)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        up.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    thread = threading.Thread(target=run, name="upstream", daemon=True)
    thread.start()
    if not up.wait(20):
        raise RuntimeError("the scripted upstream did not start")
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=20)
