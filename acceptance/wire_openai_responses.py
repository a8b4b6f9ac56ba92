"""The `openai` SDK for Python, responses, as its users call it."""

from collections.abc import Callable
from typing import Any

import openai

from acceptance.wire_cells import (
    TOOL,
    Client,
    Place,
    WrongError,
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
from acceptance.wire_openai import client, user
from acceptance.wire_upstream import KEY, MODEL, SAID, THOUGHT

FLAT_TOOL: dict[str, Any] = {"type": "function", "strict": False, **TOOL}


def _created(place: Place, given: Any, **more: Any) -> Any:
    return client(place).responses.create(model=MODEL, input=given, **more)


def _gathered(place: Place, given: Any, **more: Any) -> Any:
    with client(place).responses.stream(model=MODEL, input=given, **more) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def _whole(place: Place) -> None:
    answer = _created(place, "[say]")
    same("text", answer.output_text, SAID)
    same("status", answer.status, "completed")
    same("model", answer.model, MODEL)
    _usage(answer.usage)


def _usage(told: Any) -> None:
    got = told.input_tokens, told.input_tokens_details.cached_tokens, told.output_tokens
    same("usage", got, (120, 100, 17))
    same("total", told.total_tokens, 137)


def _streamed(place: Place) -> None:
    kinds: list[str] = []
    numbers: list[int] = []
    text = ""
    last: Any = None
    for event in _created(place, [user("[say]")], stream=True):
        kinds.append(event.type)
        numbers.append(event.sequence_number)
        if event.type == "response.output_text.delta":
            text += event.delta
        last = event
    same("text", text, SAID)
    same("first", kinds[:2], ["response.created", "response.in_progress"])
    same("last", kinds[-1], "response.completed")
    same("sequence", numbers, list(range(len(numbers))))
    same("text at the end", last.response.output_text, SAID)
    _usage(last.response.usage)


def _helper(place: Place) -> None:
    answer = _gathered(place, "[say]")
    same("text", answer.output_text, SAID)
    _usage(answer.usage)


def _incomplete(place: Place) -> None:
    answer = _created(place, "[long]", max_output_tokens=20)
    same("status", answer.status, "incomplete")
    same("why", answer.incomplete_details.reason, "max_output_tokens")
    same("text", answer.output_text, SAID)


def _instructions(place: Place) -> None:
    answer = _created(place, "[system]", instructions="Be brief.")
    same("text", answer.output_text, "told: Be brief.")


def _looks_up(place: Place, words: str, cities: int, ask: Callable[..., Any]) -> None:
    given: list[Any] = [user(place.words(words))]
    more: dict[str, Any] = {
        "tools": [FLAT_TOOL],
        "instructions": "Be brief.",
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    answer = ask(place, given, **more)
    same("status", answer.status, "completed")
    calls = [item for item in answer.output if item.type == "function_call"]
    made = [(c.call_id, c.name, arguments_of(c.arguments)) for c in calls]
    looked_up(place, made, cities=cities)
    given += [item.to_dict() for item in answer.output]
    given += [
        {
            "type": "function_call_output",
            "call_id": identity,
            "output": result_of(arguments["city"]),
        }
        for identity, _, arguments in made
    ]
    finished(place, ask(place, given, **more).output_text, cities=cities)


def _looking_up(words: str, cities: int, ask: Callable[..., Any]) -> Callable[[Place], None]:
    return lambda place: _looks_up(place, words, cities, ask)


def _thought(place: Place) -> None:
    answer = _gathered(place, [user("[think]")], tools=[FLAT_TOOL])
    (reasoning, *_) = [item for item in answer.output if item.type == "reasoning"]
    shown = [*reasoning.summary, *(reasoning.content or ())]
    same("thinking", "".join(part.text for part in shown), THOUGHT)


def _image(place: Place) -> None:
    parts = [
        {"type": "input_text", "text": "[picture]"},
        {"type": "input_image", "image_url": picture_url(), "detail": "auto"},
    ]
    same("text", _created(place, [{"role": "user", "content": parts}]).output_text, told_picture())


def _error(place: Place, words: str, wanted: type[Exception], key: str = KEY) -> Any:
    asked = client(place, key=key).responses
    return raised(wanted, lambda: asked.create(model=MODEL, input=words))


def _unauthorized(place: Place) -> None:
    error = _error(place, "[say]", openai.AuthenticationError, "sk-wrong")
    holds(f"it says why: {error.message}", "the key is wrong" in error.message)


def _not_found(place: Place) -> None:
    _error(place, "[404]", openai.NotFoundError)


def _bad_request(place: Place) -> None:
    _error(place, "[unheard]", openai.BadRequestError)


def _limited(place: Place) -> None:
    error = _error(place, f"[429 {tag()}]", openai.RateLimitError)
    same("retry-after", error.response.headers.get("retry-after"), "1")


def _limited_then_again(place: Place) -> None:
    used = tag()
    answer = client(place, retries=1).responses.create(model=MODEL, input=f"[429 {used}]")
    same("text", answer.output_text, SAID)
    waited(place, used)


def _broken(place: Place) -> None:
    same("status", _error(place, "[500]", openai.InternalServerError).status_code, 500)


def _overloaded(place: Place) -> None:
    same("status", _error(place, "[overloaded]", openai.InternalServerError).status_code, 503)


def broken(place: Place, words: str) -> Any:
    """How a stream breaks: `response.failed` is an event, at which its users look; an error that
    comes with the first words has its own status, and is raised."""
    last: Any = None
    try:
        for event in _created(place, words, stream=True):
            last = event
    except openai.APIStatusError as error:
        return error.message
    if last.type == "response.failed":
        return last.response.error.message
    raise WrongError(f"it ends with {last.type}")


def _fails_inside(place: Place) -> None:
    said = broken(place, "[fails]")
    holds(f"it says why: {said}", "overloaded" in said)


def _cut(place: Place) -> None:
    if place.dialect != "responses":
        broken(place, "[cut]")
        return
    # In its own dialect a stream passes as it is: it has no end at all.
    kinds = [event.type for event in _created(place, "[cut]", stream=True)]
    holds(f"no clean end: {kinds[-1]}", kinds[-1] == "response.output_text.delta")


RESPONSES = Client(
    "openai responses",
    {
        "whole": _whole,
        "streamed": _streamed,
        "by stream()": _helper,
        "cut at its length": _incomplete,
        "instructions": _instructions,
        "a tool": _looking_up("[tool]", 1, _created),
        "a tool, by stream()": _looking_up("[tool]", 1, _gathered),
        "parallel tools": _looking_up("[parallel]", 2, _created),
        "parallel tools, by stream()": _looking_up("[parallel]", 2, _gathered),
        "an image": _image,
        "thinking shown": _thought,
        "thinking there and back": _looking_up("[think]", 1, _created),
        "thinking there and back, by stream()": _looking_up("[think]", 1, _gathered),
        "401": _unauthorized,
        "404": _not_found,
        "400": _bad_request,
        "429": _limited,
        "429, then again": _limited_then_again,
        "500": _broken,
        "overloaded": _overloaded,
        "an error inside a stream": _fails_inside,
        "a stream that is cut": _cut,
    },
)
