"""Real clients over the fault upstream, which refuses what its APIs refuse and breaks its bytes.

A cell is a client's own case, or one below, over an upstream of one dialect that does one kind of
thing wrong. Where the client speaks that dialect itself bytes pass as they are, and only what its
SDK must bear by itself is done wrong.
"""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
from google.genai import errors

from acceptance import (
    wire_anthropic,
    wire_google,
    wire_groq,
    wire_node,
    wire_openai,
    wire_openai_responses,
    wire_pydantic_ai,
)
from acceptance.lines import Lines
from acceptance.wire_cells import (
    DIALECTS,
    Case,
    Client,
    Place,
    WrongError,
    gateway,
    raised,
    run,
    same,
)
from acceptance.wire_openai import streamed, user
from acceptance.wire_upstream import KEY, MODEL
from reflexarc.sim.faulty import FaultyUpstream

BYTES = ("split=1 crlf", "split=7 comments", "gzip split=3")
"""What any client bears: how bytes and lines come."""
SHAPES = (
    "cr noblank split=5",
    "emptyfirst nochoices pings nonames",
    "interleave",
    "twoinone repeat",
    "wholecalls stopaftertools",
    "nolifecycle usagetwice",
    "usageonlast",
)
"""What providers do to the events themselves."""
_LONG = "Tell me.\nanswer: long=30\nfault: split=9 "


class _Kind(NamedTuple):
    """A client's cases that call tools, the dialect it speaks, and how it is seen to break. `plain`
    is the case for an upstream of that dialect, where what an SDK adds to it of its own comes to
    an API that knows no such member."""

    client: Client
    own: str
    cases: tuple[str, ...]
    plain: str
    breaks: Callable[[Place, str], None] | None = None
    limited: Callable[[Place, str], None] | None = None
    refused: Callable[[Place, str], None] | None = None


def measure(lines: Lines, first: int) -> None:
    """A line for each client, from 2.`first` on."""
    kinds = list(_KINDS)
    if wire_node.missing() is None:
        for client, own in zip(wire_node.tool_clients(), ("chat", "responses"), strict=True):
            kinds.append(_Kind(client, own, tuple(client.cases), "parallel tools"))
    with fault_places() as wheres:
        for at, kind in enumerate(kinds, first):
            client = Client(f"over the fault upstream; {kind.client.name}", _cases(kind))
            run(lines, f"2.{at}", client, wheres)


def _cases(kind: _Kind) -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for at, faults in enumerate((*BYTES, *SHAPES)):
        # each kind of fault with another case in turn, and the first with all
        for name in kind.cases if at == 0 else kind.cases[at % 2 :: 2]:
            cases[f"{name} ({faults})"] = _with(kind, name, faults)
    for what, words in (
        ("an error after some words", "error_after=4 status=529"),
        ("a stream that ends too soon", "cut=4"),
        ("a stream that is reset", "reset=4"),
    ):
        if kind.breaks is not None:
            cases[what] = _broken(kind, kind.breaks, words)
    if kind.limited is not None:
        cases["429, the hint in its body"] = _said(kind.limited, "error=429 retry=7 inbody")
    if kind.refused is not None:
        cases["a page of HTML"] = _said(kind.refused, "html=502")
        cases["an error before any word"] = _said(kind.refused, "error_first=0 status=500")
    return cases


def _with(kind: _Kind, name: str, faults: str) -> Case:
    def tried(place: Place) -> None:
        own = kind.own == place.dialect
        # Google's client takes comments for JSON
        borne = faults in BYTES and not (kind.own == "gemini" and "comments" in faults)
        harmless = faults if borne or not own else BYTES[0]
        case = kind.client.cases[kind.plain if own else name]
        case(place._replace(faults=harmless))

    return tried


def _broken(kind: _Kind, breaks: Callable[[Place, str], None], words: str) -> Case:
    def tried(place: Place) -> None:
        # in its own dialect an end too soon passes as it came
        told = words if kind.own != place.dialect else "error_after=4 status=529"
        breaks(place, f"{_LONG}{told}")

    return tried


def _said(ask: Callable[[Place, str], None], words: str) -> Case:
    return lambda place: ask(place, f"Tell me.\nanswer: text\nfault: {words}")


# --- how a client breaks ------------------------------------------------------------------------


def _chat_breaks(place: Place, words: str) -> None:
    client = wire_openai.client(place)
    raised(openai.APIError, lambda: streamed(client, messages=[user(words)]))


def _responses_break(place: Place, words: str) -> None:
    """`response.failed` is an event; `error` is raised."""
    kinds: list[str] = []
    asked = wire_openai.client(place).responses
    try:
        kinds.extend(event.type for event in asked.create(model=MODEL, input=words, stream=True))
    except openai.APIError:
        return
    same("last", kinds[-1:], ["response.failed"])


def _messages_break(place: Place, words: str) -> None:
    def ask() -> Any:
        client = wire_anthropic.client(place)
        given: list[Any] = [user(words)]
        with client.messages.stream(model=MODEL, max_tokens=99, messages=given) as stream:
            return stream.get_final_message()

    raised(anthropic.APIError, ask)


def _google_breaks(place: Place, words: str) -> None:
    with wire_google.client(place) as client:
        ask = client.models.generate_content_stream
        raised(errors.APIError, lambda: list(ask(model=MODEL, contents=words)))


def _limited(
    own: str, wanted: type[Exception], ask: Callable[[Place, str], Any]
) -> Callable[..., None]:
    """The hint is in a header too, where SDKs look for it."""

    def tried(place: Place, words: str) -> None:
        error = raised(wanted, lambda: ask(place, words))
        # the errors of messages have no place for a hint, and one's own pass as they are
        hint = None if place.dialect in ("messages", own) else "7"
        same("retry-after", error.response.headers.get("retry-after"), hint)

    return tried


def _refused(wanted: type[Exception], ask: Callable[[Place, str], Any]) -> Callable[..., None]:
    def tried(place: Place, words: str) -> None:
        raised(wanted, lambda: ask(place, words))

    return tried


def _ask_chat(place: Place, words: str) -> Any:
    return streamed(wire_openai.client(place), messages=[user(words)])


def _ask_responses(place: Place, words: str) -> Any:
    asked = wire_openai.client(place).responses
    events = list(asked.create(model=MODEL, input=words, stream=True))
    if events[-1].type != "response.failed":
        raise WrongError(f"it ends with {events[-1].type}")
    raise openai.APIError("told as an event", request=None, body=None)  # pyright: ignore[reportArgumentType] - in its own dialect a fault passes as it came


def _ask_messages(place: Place, words: str) -> Any:
    given: dict[str, Any] = {"model": MODEL, "max_tokens": 99, "messages": [user(words)]}
    return list(wire_anthropic.client(place).messages.create(**given, stream=True))


_CHAT_CASES = ("parallel tools, by stream()", "parallel tools", "thinking there and back")
_STREAMS = ("parallel tools, by stream()", "thinking there and back, by stream()")
_GOOGLE = ("parallel tools, streamed", "thinking there and back, streamed", "parallel tools")
_PYDANTIC = ("parallel tools, streamed", "thinking there and back, streamed", "a tool")
_GROQ = ("parallel tools, streamed", "parallel tools", "thinking there and back")
_chat, _responses, _anthropic, _google = wire_pydantic_ai.PYDANTIC_AI
_KINDS = (
    _Kind(
        wire_openai.CHAT, "chat", _CHAT_CASES, "parallel tools", _chat_breaks,
        _limited("chat", openai.RateLimitError, _ask_chat), _refused(openai.APIError, _ask_chat),
    ),
    _Kind(
        wire_openai_responses.RESPONSES, "responses", _STREAMS, "parallel tools",
        _responses_break, _limited("responses", openai.RateLimitError, _ask_responses),
        _refused(openai.APIError, _ask_responses),
    ),
    _Kind(
        wire_anthropic.ANTHROPIC, "messages", (*_STREAMS, "parallel tools, by tool_runner"),
        "parallel tools, by stream()",
        _messages_break, _limited("messages", anthropic.RateLimitError, _ask_messages),
        _refused(anthropic.APIStatusError, _ask_messages),
    ),
    _Kind(wire_groq.GROQ, "chat", _GROQ, "parallel tools"),
    _Kind(wire_groq.CEREBRAS, "chat", _GROQ, "parallel tools"),
    _Kind(
        wire_google.GOOGLE, "gemini", (*_GOOGLE, "thinking there and back, in a chat"),
        "parallel tools, streamed", _google_breaks,
    ),
    _Kind(_chat, "chat", _PYDANTIC, _PYDANTIC[0]),
    _Kind(_responses, "responses", _PYDANTIC, _PYDANTIC[0]),
    _Kind(_anthropic, "messages", _PYDANTIC, _PYDANTIC[0]),
    _Kind(_google, "gemini", _PYDANTIC, _PYDANTIC[1]),
)  # fmt: skip


# --- the fault upstream, on a thread --------------------------------------------------------------


@contextmanager
def fault_places() -> Generator[Mapping[str, Place]]:
    """A gateway before the fault upstream, a route for each dialect."""
    with faulty() as up, tempfile.TemporaryDirectory(prefix="wire-faulty-") as folder:
        routes = [
            (f"/{name}", name, up.gemini_url if name == "gemini" else up.url) for name in DIALECTS
        ]
        with gateway(Path(folder), routes) as base, ExitStack() as opened:
            yield {name: Place(f"{base}/{name}", name, opened) for name in DIALECTS}


@contextmanager
def faulty() -> Generator[FaultyUpstream]:
    up = FaultyUpstream(KEY)
    started = threading.Event()
    done = asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        await up.start()
        started.set()
        await done.wait()
        await up.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    if not started.wait(20):
        raise RuntimeError("the fault upstream did not start")
    try:
        yield up
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(timeout=20)
        loop.close()
