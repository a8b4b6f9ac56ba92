"""Real clients before llama.cpp's own server, which speaks chat, responses and messages itself: the
gateway is told of one of the three at a time, and of all.

The model is small and says what it likes: what is checked is that it is told to its end, in pieces
where it streams, with its own counts of tokens.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from acceptance import wire_llama_clients as asking
from acceptance import wire_node
from acceptance.lines import Lines
from acceptance.wire_cells import Case, Client, Place, gateway, holds, run
from acceptance.wire_llama_clients import LIMIT, Told

ROUTES: Mapping[str, object] = {
    "chat": "chat",
    "responses": "responses",
    "messages": "messages",
    "all three": ["chat", "responses", "messages"],
}


_LONG = "Tell me a long story about the sea, with all the ships and the storms in it."


class _Speaker(NamedTuple):
    """A client: how it asks, and which dialect is its own."""

    name: str
    own: str
    ask: asking.Ask
    later: asking.Later | None = None
    wrong: Callable[[Place], None] | None = None
    counted: Callable[[Place], int] | None = None


_SPEAKERS = (
    _Speaker(
        "openai chat", "chat", asking.chat, asking.chat_later, asking.chat_wrong
    ),
    _Speaker(
        "openai responses", "responses", asking.responses, asking.responses_later,
        asking.responses_wrong,
    ),
    _Speaker(
        "anthropic", "messages", asking.messages, asking.messages_later, asking.messages_wrong,
        asking.messages_count,
    ),
    _Speaker("groq", "chat", asking.groq, asking.groq_later, asking.groq_wrong),
    _Speaker("cerebras-cloud-sdk", "chat", asking.cerebras),
    _Speaker(
        "google-genai", "gemini", asking.google, asking.google_later, asking.google_wrong,
        asking.google_count,
    ),
    _Speaker("pydantic-ai, OpenAI chat", "chat", asking.pydantic_chat),
    _Speaker("pydantic-ai, OpenAI responses", "responses", asking.pydantic_responses),
    _Speaker("pydantic-ai, Anthropic", "messages", asking.pydantic_messages),
    _Speaker("pydantic-ai, Google", "gemini", asking.pydantic_google),
)  # fmt: skip


def measure(lines: Lines, first: int) -> None:
    """A line for each client, from 2.`first` on."""
    clients = [Client(speaker.name, _cases(speaker)) for speaker in _SPEAKERS]
    clients += [] if wire_node.missing() else wire_node.plain_clients()
    with llama_places() as wheres:
        for at, client in enumerate(clients, first):
            run(lines, f"2.{at}", client._replace(name=f"llama.cpp itself; {client.name}"), wheres)


@contextmanager
def llama_places() -> Generator[dict[str, Place]]:
    with _server() as base, tempfile.TemporaryDirectory(prefix="wire-llama-") as folder:
        routes = [
            (f"/{name.replace(' ', '-')}", dialect, f"{base}/v1")
            for name, dialect in ROUTES.items()
        ]
        with gateway(Path(folder), routes) as here, ExitStack() as opened:
            yield {
                name: Place(f"{here}{path}", name, opened)
                for name, (path, _, _) in zip(ROUTES, routes, strict=True)
            }


@contextmanager
def _server() -> Generator[str]:
    """llama.cpp in a process of its own, at an address."""
    running = subprocess.Popen(
        [sys.executable, "-m", "acceptance.wire_llama_server"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        base = running.stdout.readline().strip()
        if not base:
            raise RuntimeError("llama.cpp did not start; what it said stands above")
        yield base
    finally:
        running.stdin.close()
        running.stdout.close()
        try:
            running.wait(timeout=20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _cases(speaker: _Speaker) -> dict[str, Case]:
    def tells(stream: bool) -> Case:
        def tried(place: Place) -> None:
            _check(place, speaker, speaker.ask(place, _LONG, stream), goes_on=True)

        return tried

    cases: dict[str, Case] = {"whole": tells(False), "streamed": tells(True)}
    later, wrong, count = speaker.later, speaker.wrong, speaker.counted
    if later is not None:

        def goes_on(place: Place) -> None:
            _check(place, speaker, later(place), goes_on=False)

        cases["after a call and its result"] = goes_on
    if wrong is not None:
        cases["errors: 401, 400"] = wrong
    if count is not None:

        def counts(place: Place) -> None:
            told = count(place)
            holds(f"a count of a few tokens: {told}", 5 < told < 100)

        cases["count_tokens"] = counts
    return cases


def _check(place: Place, speaker: _Speaker, told: Told, *, goes_on: bool) -> None:
    """`goes_on`: the model has more to say than the limit lets it."""
    holds(f"text: {told.text!r}", told.text.strip())
    holds(f"tokens of the prompt: {told.prompt}", 5 < told.prompt < 400)
    holds(f"tokens of the answer: {told.output} of {LIMIT}", 0 < told.output <= LIMIT)
    if told.pieces is not None:
        holds(f"it came in pieces: {told.pieces}", told.pieces > 2)
    spoken = speaker.own if speaker.own in ROUTES else "chat"
    spoken = place.dialect if place.dialect in ROUTES and place.dialect != "all three" else spoken
    # llama.cpp's responses are called completed where they were cut
    if spoken == "responses" or told.output < LIMIT:
        holds("it is called cut, and was not", not told.cut)
    elif goes_on:
        holds("it was cut, and is not called so", told.cut)
