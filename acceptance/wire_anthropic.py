"""The `anthropic` SDK for Python, as its users call it."""

import base64
from collections.abc import Callable
from typing import Any

import anthropic

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

NAMED_TOOL: dict[str, Any] = {
    "name": TOOL["name"],
    "description": TOOL["description"],
    "input_schema": TOOL["parameters"],
}


def client(place: Place, *, key: str = KEY, retries: int = 0) -> Any:
    # typed as anything: what is sent is built from dicts, as agents do
    made = anthropic.Anthropic(base_url=place.base, api_key=key, max_retries=retries, timeout=30)
    return place.kept(made)


def _user(words: str) -> list[Any]:
    return [{"role": "user", "content": words}]


def _created(place: Place, messages: list[Any], **more: Any) -> Any:
    asked = {"model": MODEL, "max_tokens": 500, "messages": messages, **more}
    return client(place).messages.create(**asked)


def _gathered(place: Place, messages: list[Any], **more: Any) -> Any:
    asked = {"model": MODEL, "max_tokens": 500, "messages": messages, **more}
    with client(place).messages.stream(**asked) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def _text(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def _whole(place: Place) -> None:
    message = _created(place, _user("[say]"))
    same("text", _text(message), SAID)
    same("stop", message.stop_reason, "end_turn")
    same("model", message.model, MODEL)
    _usage(message.usage)


def _usage(told: Any) -> None:
    got = told.input_tokens, told.cache_read_input_tokens, told.output_tokens
    same("usage", got, (20, 100, 17))


def _streamed(place: Place) -> None:
    with client(place).messages.stream(
        model=MODEL, max_tokens=500, messages=_user("[say]")
    ) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    same("text", text, SAID)
    same("stop", message.stop_reason, "end_turn")
    _usage(message.usage)


def _raw_stream(place: Place) -> None:
    kinds = [event.type for event in _created(place, _user("[say]"), stream=True)]
    same("first", kinds[:2], ["message_start", "content_block_start"])
    same("last", kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])


def _length(place: Place) -> None:
    message = _gathered(place, _user("[long]"))
    same("text", _text(message), SAID)
    same("stop", message.stop_reason, "max_tokens")


def _system(place: Place) -> None:
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    same("text", _text(_created(place, _user("[system]"), system=system)), "told: Be brief.")


def _looks_up(place: Place, words: str, cities: int, ask: Callable[..., Any]) -> None:
    messages: list[Any] = _user(place.words(words))
    more: dict[str, Any] = {"tools": [NAMED_TOOL], "tool_choice": {"type": "auto"}}
    if "think" in words:
        more |= {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
    message = ask(place, messages, **more)
    same("stop", message.stop_reason, "tool_use")
    calls = [block for block in message.content if block.type == "tool_use"]
    looked_up(place, [(c.id, c.name, c.input) for c in calls], cities=cities)
    results = [
        {"type": "tool_result", "tool_use_id": c.id, "content": result_of(c.input["city"])}
        for c in calls
    ]
    messages += [
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": results},
    ]
    message = ask(place, messages, **more)
    finished(place, _text(message), cities=cities)
    same("stop", message.stop_reason, "end_turn")


def _looking_up(words: str, cities: int, ask: Callable[..., Any]) -> Callable[[Place], None]:
    return lambda place: _looks_up(place, words, cities, ask)


def _runner(place: Place) -> None:
    """The SDK's own loop: it calls the tool and goes on by itself."""

    def get_weather(city: str, days: int) -> str:
        """The weather of a city.

        Args:
            city: its name
            days: how many
        """
        holds(f"days are a number: {days!r}", days in (1, 2))
        return result_of(city)

    beta: Any = client(place).beta.messages
    tool: Any = anthropic.beta_tool(get_weather)
    runner = beta.tool_runner(
        model=MODEL, max_tokens=500, tools=[tool], messages=_user(place.words("[parallel]"))
    )
    finished(place, _text(runner.until_done()), cities=2)


def _thought(ask: Callable[..., Any]) -> Callable[[Place], None]:
    def tried(place: Place) -> None:
        message = ask(place, _user("[think]"), tools=[NAMED_TOOL])
        thoughts = [block.thinking for block in message.content if block.type == "thinking"]
        same("thinking", "".join(thoughts), THOUGHT)

    return tried


def _image(place: Place) -> None:
    source = {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(picture()).decode(),
    }
    parts = [{"type": "image", "source": source}, {"type": "text", "text": "[picture]"}]
    message = _created(place, [{"role": "user", "content": parts}])
    same("text", _text(message), told_picture())


def _counts(place: Place) -> None:
    told = client(place).messages.count_tokens(
        model=MODEL, messages=_user("how long is this?"), tools=[NAMED_TOOL], system="Be brief."
    )
    if place.dialect in ("messages", "gemini"):
        same("count", told.input_tokens, COUNTED)
    else:  # no such upstream counts: it is estimated
        holds(f"an estimate: {told.input_tokens}", 20 < told.input_tokens < 400)


def _error(place: Place, words: str, wanted: type[Exception], key: str = KEY) -> Any:
    asked = client(place, key=key).messages
    return raised(wanted, lambda: asked.create(model=MODEL, max_tokens=9, messages=_user(words)))


def _unauthorized(place: Place) -> None:
    error = _error(place, "[say]", anthropic.AuthenticationError, "sk-wrong")
    same("type", error.body["error"]["type"], "authentication_error")
    holds(f"it says why: {error}", "the key is wrong" in str(error))


def _not_found(place: Place) -> None:
    error = _error(place, "[404]", anthropic.NotFoundError)
    same("type", error.body["error"]["type"], "not_found_error")


def _bad_request(place: Place) -> None:
    _error(place, "[unheard]", anthropic.BadRequestError)


def _limited(place: Place) -> None:
    error = _error(place, f"[429 {tag()}]", anthropic.RateLimitError)
    same("type", error.body["error"]["type"], "rate_limit_error")
    same("retry-after", error.response.headers.get("retry-after"), "1")


def _limited_then_again(place: Place) -> None:
    used = tag()
    asked = client(place, retries=1).messages
    message = asked.create(model=MODEL, max_tokens=9, messages=_user(f"[429 {used}]"))
    same("text", _text(message), SAID)
    waited(place, used)


def _broken(place: Place) -> None:
    error = _error(place, "[500]", anthropic.InternalServerError)
    same("status", (error.status_code, error.body["error"]["type"]), (500, "api_error"))


def _overloaded(place: Place) -> None:
    error = _error(place, "[overloaded]", anthropic.InternalServerError)
    same("status", (error.status_code, error.body["error"]["type"]), (529, "overloaded_error"))


def _fails_inside(place: Place) -> None:
    error = raised(anthropic.APIStatusError, lambda: _gathered(place, _user("[fails]")))
    # inside a stream OpenAI's errors have no status, and a word for any fault of a server
    told = "api_error" if place.dialect in ("chat", "responses") else "overloaded_error"
    same("type", error.body["error"]["type"], told)


def _cut(place: Place) -> None:
    if place.dialect != "messages":
        raised(anthropic.APIStatusError, lambda: _gathered(place, _user("[cut]")))
        return
    # In its own dialect a stream passes as it is: the SDK sees an end without a stop reason.
    same("stop", _gathered(place, _user("[cut]")).stop_reason, None)


def _models(place: Place) -> None:
    same("models", [model.id for model in client(place).models.list()], [MODEL])


ANTHROPIC = Client(
    "anthropic",
    {
        "whole": _whole,
        "text_stream": _streamed,
        "raw stream": _raw_stream,
        "cut at its length": _length,
        "system": _system,
        "a tool": _looking_up("[tool]", 1, _created),
        "a tool, by stream()": _looking_up("[tool]", 1, _gathered),
        "parallel tools": _looking_up("[parallel]", 2, _created),
        "parallel tools, by stream()": _looking_up("[parallel]", 2, _gathered),
        "parallel tools, by tool_runner": _runner,
        "an image": _image,
        "thinking shown": _thought(_created),
        "thinking shown, by stream()": _thought(_gathered),
        "thinking there and back": _looking_up("[think]", 1, _created),
        "thinking there and back, by stream()": _looking_up("[think]", 1, _gathered),
        "count_tokens": _counts,
        "401": _unauthorized,
        "404": _not_found,
        "400": _bad_request,
        "429": _limited,
        "429, then again": _limited_then_again,
        "500": _broken,
        "overloaded": _overloaded,
        "an error inside a stream": _fails_inside,
        "a stream that is cut": _cut,
        "models": _models,
    },
)
