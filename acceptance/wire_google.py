"""The `google-genai` SDK, as its users call it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from google import genai
from google.genai import errors, types

from acceptance.wire_cells import (
    TOOL,
    Client,
    Place,
    finished,
    holds,
    looked_up,
    picture,
    raised,
    result_of,
    same,
    tag,
    told_picture,
    waited,
)
from acceptance.wire_upstream import COUNTED, KEY, MODEL, SAID, THOUGHT

DECLARED: dict[str, Any] = {
    "name": TOOL["name"],
    "description": TOOL["description"],
    "parameters_json_schema": TOOL["parameters"],
}
TOOLS: list[Any] = [{"function_declarations": [DECLARED]}]


@contextmanager
def client(place: Place, *, key: str = KEY, attempts: int = 1) -> Generator[Any]:
    retrying = types.HttpRetryOptions(attempts=attempts)
    options = types.HttpOptions(base_url=place.base, timeout=30_000, retry_options=retrying)
    with genai.Client(api_key=key, http_options=options) as made:
        yield made


def _asked(place: Place, contents: Any, **config: Any) -> Any:
    with client(place) as asked:
        return asked.models.generate_content(model=MODEL, contents=contents, config=config or None)


def _gathered(place: Place, contents: Any, **config: Any) -> Any:
    """The parts of all chunks, as a response that holds them."""
    with client(place) as asked:
        streaming = asked.models.generate_content_stream
        chunks = list(streaming(model=MODEL, contents=contents, config=config or None))
    parts = [
        part
        for chunk in chunks
        for candidate in chunk.candidates or ()
        for part in (candidate.content.parts if candidate.content else None) or ()
    ]
    last = chunks[-1]
    content = types.Content(role="model", parts=parts)
    candidate = types.Candidate(content=content, finish_reason=last.candidates[0].finish_reason)
    return types.GenerateContentResponse(
        candidates=[candidate], usage_metadata=last.usage_metadata, model_version=last.model_version
    )


def _said(response: Any) -> str:
    return "".join(
        part.text for part in response.candidates[0].content.parts
        if part.text and not part.thought
    )  # fmt: skip


def _answers(ask: Callable[..., Any]) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        response = ask(place, "[say]", temperature=0.2, max_output_tokens=100)
        same("text", _said(response), SAID)
        same("finish", response.candidates[0].finish_reason, types.FinishReason.STOP)
        same("model", response.model_version, MODEL)
        _usage(response.usage_metadata)

    return tried


def _usage(told: Any) -> None:
    got = (
        told.prompt_token_count,
        told.cached_content_token_count,
        told.candidates_token_count + (told.thoughts_token_count or 0),
    )
    same("usage", got, (120, 100, 17))
    same("total", told.total_token_count, 137)


def _length(place: Place) -> None:
    response = _gathered(place, "[long]")
    same("text", _said(response), SAID)
    same("finish", response.candidates[0].finish_reason, types.FinishReason.MAX_TOKENS)


def _system(place: Place) -> None:
    response = _asked(place, "[system]", system_instruction="Be brief.")
    same("text", _said(response), "told: Be brief.")


def _looks_up(words: str, cities: int, ask: Callable[..., Any]) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        asked = types.Part(text=place.words(words))
        contents: list[Any] = [types.Content(role="user", parts=[asked])]
        more: dict[str, Any] = {"tools": TOOLS}
        if "think" in words:
            more["thinking_config"] = {"include_thoughts": True}
        response = ask(place, contents, **more)
        content = response.candidates[0].content
        calls = [part.function_call for part in content.parts if part.function_call]
        made = [(c.id or f"place {at}", c.name, c.args) for at, c in enumerate(calls)]
        looked_up(place, made, cities=cities)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=c.id, name=c.name, response={"result": result_of(c.args["city"])}
                )
            )
            for c in calls
        ]
        contents += [content, types.Content(role="user", parts=results)]
        finished(place, _said(ask(place, contents, **more)), cities=cities)

    return tried


def get_weather(city: str, days: int) -> str:
    """The weather of a city."""
    holds(f"days are a number: {days!r}", days in (1, 2))
    return result_of(city)


def _calls_itself(place: Place) -> None:
    """The SDK's own loop: it calls the function and goes on by itself."""
    answer = _asked(place, place.words("[parallel]"), tools=[get_weather])
    finished(place, answer.text, cities=2)


def _chats(place: Place) -> None:
    """A chat keeps its history by itself, of streams too."""
    with client(place) as asked:
        chat = asked.chats.create(model=MODEL, config={"tools": TOOLS})
        chunks = list(chat.send_message_stream(place.words("[think]")))
        calls = [call for chunk in chunks for call in chunk.function_calls or ()]
        looked_up(place, [(c.id or "none", c.name, c.args) for c in calls], cities=1)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=c.id, name=c.name, response={"result": result_of(c.args["city"])}
                )
            )
            for c in calls
        ]
        text = "".join(chunk.text or "" for chunk in chat.send_message_stream(results))
        finished(place, text, cities=1)


def _thought(ask: Callable[..., Any]) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        config = {"include_thoughts": True}
        response = ask(place, "[think]", tools=TOOLS, thinking_config=config)
        parts = response.candidates[0].content.parts
        same("thinking", "".join(part.text for part in parts if part.thought), THOUGHT)

    return tried


def _image(place: Place) -> None:
    parts = [types.Part.from_bytes(data=picture(), mime_type="image/png"), "[picture]"]
    same("text", _asked(place, parts).text, told_picture())


def _counts(place: Place) -> None:
    with client(place) as asked:
        told = asked.models.count_tokens(model=MODEL, contents="how long is this?")
    if place.dialect in ("messages", "gemini"):
        same("count", told.total_tokens, COUNTED)
    else:  # no such upstream counts: it is estimated
        holds(f"an estimate: {told.total_tokens}", 0 < told.total_tokens < 100)


def _error(place: Place, words: str, wanted: type[Exception], key: str = KEY) -> Any:
    with client(place, key=key) as asked:
        ask = asked.models.generate_content
        return raised(wanted, lambda: ask(model=MODEL, contents=words))


def _unauthorized(place: Place) -> None:
    error = _error(place, "[say]", errors.ClientError, "wrong")
    same("status", (error.code, error.status), (401, "UNAUTHENTICATED"))
    holds(f"it says why: {error}", "the key is wrong" in str(error))


def _client_error(words: str, code: int, status: str) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        error = _error(place, words, errors.ClientError)
        same("status", (error.code, error.status), (code, status))

    return tried


def _limited(place: Place) -> None:
    error = _error(place, f"[429 {tag()}]", errors.ClientError)
    same("status", (error.code, error.status), (429, "RESOURCE_EXHAUSTED"))
    hints = [
        detail["retryDelay"] for detail in error.details["error"]["details"]
        if detail["@type"].endswith("RetryInfo")
    ]  # fmt: skip
    same("retryDelay", hints, ["1s"])


def _limited_then_again(place: Place) -> None:
    used = tag()
    with client(place, attempts=2) as asked:
        answer = asked.models.generate_content(model=MODEL, contents=f"[429 {used}]")
    same("text", answer.text, SAID)
    waited(place, used)


def _server_error(words: str, code: int, status: str) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        error = _error(place, words, errors.ServerError)
        same("status", (error.code, error.status), (code, status))

    return tried


def _inside(words: str) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        raised(errors.APIError, lambda: _gathered(place, words))

    return tried


def _cut(place: Place) -> None:
    if place.dialect != "gemini":
        _inside("[cut]")(place)
        return
    # In its own dialect a stream passes as it is: the SDK sees an end without a finish reason.
    same("finish", _gathered(place, "[cut]").candidates[0].finish_reason, None)


def _models(place: Place) -> None:
    with client(place) as asked:
        same("models", [model.name for model in asked.models.list()], [f"models/{MODEL}"])


GOOGLE = Client(
    "google-genai",
    {
        "whole": _answers(_asked),
        "streamed": _answers(_gathered),
        "cut at its length": _length,
        "system": _system,
        "a tool": _looks_up("[tool]", 1, _asked),
        "a tool, streamed": _looks_up("[tool]", 1, _gathered),
        "parallel tools": _looks_up("[parallel]", 2, _asked),
        "parallel tools, streamed": _looks_up("[parallel]", 2, _gathered),
        "parallel tools, called by the SDK": _calls_itself,
        "an image": _image,
        "thinking shown": _thought(_asked),
        "thinking shown, streamed": _thought(_gathered),
        "thinking there and back": _looks_up("[think]", 1, _asked),
        "thinking there and back, streamed": _looks_up("[think]", 1, _gathered),
        "thinking there and back, in a chat": _chats,
        "count_tokens": _counts,
        "401": _unauthorized,
        "404": _client_error("[404]", 404, "NOT_FOUND"),
        "400": _client_error("[unheard]", 400, "INVALID_ARGUMENT"),
        "429": _limited,
        "429, then again": _limited_then_again,
        "500": _server_error("[500]", 500, "INTERNAL"),
        "overloaded": _server_error("[overloaded]", 503, "UNAVAILABLE"),
        "an error inside a stream": _inside("[fails]"),
        "a stream that is cut": _cut,
        "models": _models,
    },
)
