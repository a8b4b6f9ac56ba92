"""The `openai` SDK for Python, chat completions and responses, as its users call it."""

from typing import Any

import openai
from openai import OpenAI

from acceptance.wire_cells import (
    TOOL,
    Client,
    Place,
    arguments_of,
    finished,
    holds,
    looked_up,
    picture_url,
    raised,
    result_of,
    same,
    tag,
    told_picture,
    waited,
)
from acceptance.wire_upstream import KEY, MODEL, SAID, THOUGHT

CHAT_TOOL: dict[str, Any] = {"type": "function", "function": TOOL}


def client(place: Place, *, key: str = KEY, retries: int = 0) -> Any:
    # typed as anything: what is sent is built from dicts, as agents do
    made = OpenAI(base_url=f"{place.base}/v1", api_key=key, max_retries=retries, timeout=30)
    return place.kept(made)


def user(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def _whole(place: Place) -> None:
    answer = client(place).chat.completions.create(model=MODEL, messages=[user("[say]")])
    same("text", answer.choices[0].message.content, SAID)
    same("finish", answer.choices[0].finish_reason, "stop")
    same("model", answer.model, MODEL)
    same("object", answer.object, "chat.completion")
    usage(answer.usage)


def usage(told: Any) -> None:
    same(
        "usage",
        (told.prompt_tokens, told.prompt_tokens_details.cached_tokens, told.completion_tokens),
        (120, 100, 17),
    )
    same("total", told.total_tokens, 137)


def streamed(asked: Any, **more: Any) -> tuple[str, dict[int, list[str]], list[Any], list[Any]]:
    """Text, calls (id, name, arguments) by index, finish reasons and usages of a plain stream."""
    text, calls = "", dict[int, list[str]]()
    finishes: list[Any] = []
    usages: list[Any] = []
    for chunk in asked.chat.completions.create(model=MODEL, stream=True, **more):
        usages += [chunk.usage] if getattr(chunk, "usage", None) else []
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finishes += [choice.finish_reason] if choice.finish_reason else []
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index, ["", "", ""])
                call[0] += part.id or ""
                call[1] += part.function.name or ""
                call[2] += part.function.arguments or ""
    return text, calls, finishes, usages


def _streamed(place: Place) -> None:
    options = {"include_usage": True}
    text, _, finishes, usages = streamed(
        client(place), messages=[user("[say]")], stream_options=options
    )
    same("text", text, SAID)
    same("finishes", finishes, ["stop"])
    same("usages", len(usages), 1)
    usage(usages[0])


def _streamed_without_usage(place: Place) -> None:
    text, _, finishes, usages = streamed(client(place), messages=[user("[long]")])
    same("text", text, SAID)
    same("finishes", finishes, ["length"])
    # an upstream of the same dialect is asked as the client asked, and this one tells unasked
    holds(f"no usage was asked for: {usages}", not usages or place.dialect == "chat")


def _final(place: Place, messages: list[Any], *, helper: bool, **more: Any) -> Any:
    """The finished message, by `create` or gathered by the SDK's stream helper."""
    completions = client(place).chat.completions
    if not helper:
        return completions.create(model=MODEL, messages=messages, **more).choices[0]
    with completions.stream(model=MODEL, messages=messages, **more) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0]


def _looks_up(place: Place, words: str, cities: int, *, helper: bool) -> None:
    system = {"role": "system", "content": "Be brief."}
    messages: list[Any] = [system, user(place.words(words))]
    more = {"tools": [CHAT_TOOL], "tool_choice": "auto", "parallel_tool_calls": cities > 1}
    choice = _final(place, messages, helper=helper, **more)
    same("finish", choice.finish_reason, "tool_calls")
    calls: list[Any] = choice.message.tool_calls or []
    made = [(c.id, c.function.name, arguments_of(c.function.arguments)) for c in calls]
    looked_up(place, made, cities=cities)
    messages.append(choice.message)
    messages += [
        {"role": "tool", "tool_call_id": identity, "content": result_of(arguments["city"])}
        for identity, _, arguments in made
    ]
    choice = _final(place, messages, helper=helper, **more)
    finished(place, choice.message.content, cities=cities)
    same("finish", choice.finish_reason, "stop")


def _tool(place: Place) -> None:
    _looks_up(place, "[tool]", 1, helper=False)


def _tool_streamed(place: Place) -> None:
    _looks_up(place, "[tool]", 1, helper=True)


def _parallel(place: Place) -> None:
    _looks_up(place, "[parallel]", 2, helper=False)


def _parallel_streamed(place: Place) -> None:
    _looks_up(place, "[parallel]", 2, helper=True)


def _parallel_plain_stream(place: Place) -> None:
    text, calls, finishes, _ = streamed(
        client(place), messages=[user(place.words("[parallel]"))], tools=[CHAT_TOOL]
    )
    holds(f"text before the calls: {text!r}", text.endswith("ook."))
    same("finishes", finishes, ["tool_calls"])
    same("indices", sorted(calls), [0, 1])
    made = [(c[0], c[1], arguments_of(c[2])) for c in calls.values()]
    looked_up(place, made, cities=2)


def _thinks(place: Place) -> None:
    _looks_up(place, "[think]", 1, helper=False)


def _thinks_streamed(place: Place) -> None:
    _looks_up(place, "[think]", 1, helper=True)


def _thought(place: Place) -> None:
    choice = _final(place, [user("[think]")], helper=False, tools=[CHAT_TOOL])
    same("thinking", getattr(choice.message, "reasoning_content", None), THOUGHT)


def _image(place: Place) -> None:
    parts = [
        {"type": "text", "text": "[picture]"},
        {"type": "image_url", "image_url": {"url": picture_url()}},
    ]
    choice = _final(place, [{"role": "user", "content": parts}], helper=False)
    same("text", choice.message.content, told_picture())


def chat_error(place: Place, words: str, wanted: type[Exception], key: str = KEY) -> Any:
    def ask() -> Any:
        asked = client(place, key=key).chat.completions
        return asked.create(model=MODEL, messages=[user(words)])

    return raised(wanted, ask)


def _unauthorized(place: Place) -> None:
    error = chat_error(place, "[say]", openai.AuthenticationError, "sk-wrong")
    same("status", error.status_code, 401)
    holds(f"it says why: {error.message}", "the key is wrong" in error.message)


def _not_found(place: Place) -> None:
    error = chat_error(place, "[404]", openai.NotFoundError)
    holds(f"it says why: {error.message}", "the upstream says 404" in error.message)


def _bad_request(place: Place) -> None:
    chat_error(place, "[unheard]", openai.BadRequestError)


def _limited(place: Place) -> None:
    error = chat_error(place, f"[429 {tag()}]", openai.RateLimitError)
    same("retry-after", error.response.headers.get("retry-after"), "1")


def _limited_then_again(place: Place) -> None:
    used = tag()
    asked = client(place, retries=1).chat.completions
    answer = asked.create(model=MODEL, messages=[user(f"[429 {used}]")])
    same("text", answer.choices[0].message.content, SAID)
    waited(place, used)


def _broken(place: Place) -> None:
    same("status", chat_error(place, "[500]", openai.InternalServerError).status_code, 500)


def _overloaded(place: Place) -> None:
    error = chat_error(place, "[overloaded]", openai.InternalServerError)
    same("status", error.status_code, 503)


def _inside(words: str) -> Any:
    def tried(place: Place) -> None:
        def ask() -> Any:
            return streamed(client(place), messages=[user(words)])

        raised(openai.APIError, ask)

    return tried


def _cut(place: Place) -> None:
    """In its own dialect a stream passes as it is: the SDK sees an end without a finish reason."""
    if place.dialect != "chat":
        _inside("[cut]")(place)
        return
    _, _, finishes, _ = streamed(client(place), messages=[user("[cut]")])
    same("finishes", finishes, [])


def _models(place: Place) -> None:
    same("models", [model.id for model in client(place).models.list()], [MODEL])


CHAT = Client(
    "openai chat",
    {
        "whole": _whole,
        "streamed": _streamed,
        "streamed, cut at its length": _streamed_without_usage,
        "a tool": _tool,
        "a tool, by stream()": _tool_streamed,
        "parallel tools": _parallel,
        "parallel tools, by stream()": _parallel_streamed,
        "parallel tools, plain stream": _parallel_plain_stream,
        "an image": _image,
        "thinking shown": _thought,
        "thinking there and back": _thinks,
        "thinking there and back, by stream()": _thinks_streamed,
        "401": _unauthorized,
        "404": _not_found,
        "400": _bad_request,
        "429": _limited,
        "429, then again": _limited_then_again,
        "500": _broken,
        "overloaded": _overloaded,
        "an error inside a stream": _inside("[fails]"),
        "a stream that is cut": _cut,
        "models": _models,
    },
)
