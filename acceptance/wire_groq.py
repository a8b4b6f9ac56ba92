"""The `groq` and `cerebras-cloud-sdk` SDKs: OpenAI's chat at places and in words of their own."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import cerebras.cloud.sdk as cerebras
import groq

from acceptance.wire_cells import (
    Case,
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
from acceptance.wire_openai import CHAT_TOOL, streamed, usage, user
from acceptance.wire_upstream import KEY, MODEL, SAID, THOUGHT

Make = Callable[[Place, str, int], Any]


class _Sdk(NamedTuple):
    """One of the two: `make` takes the place, the key, and how often it tries again."""

    name: str
    make: Make
    errors: Any

    def client(self, place: Place, *, key: str = KEY, retries: int = 0) -> Any:
        return self.make(place, key, retries)

    def final(self, place: Place, messages: list[Any], **more: Any) -> Any:
        created = self.client(place).chat.completions.create(model=MODEL, messages=messages, **more)
        return created.choices[0]

    def whole(self, place: Place) -> None:
        answer = self.client(place).chat.completions.create(model=MODEL, messages=[user("[say]")])
        same("text", answer.choices[0].message.content, SAID)
        same("finish", answer.choices[0].finish_reason, "stop")
        usage(answer.usage)

    def streams(self, place: Place) -> None:
        text, _, finishes, _ = streamed(self.client(place), messages=[user("[say]")])
        same("text", text, SAID)
        same("finishes", finishes, ["stop"])

    def streams_tools(self, place: Place) -> None:
        text, calls, finishes, _ = streamed(
            self.client(place), messages=[user(place.words("[parallel]"))], tools=[CHAT_TOOL]
        )
        holds(f"text before the calls: {text!r}", text.endswith("ook."))
        same("finishes", finishes, ["tool_calls"])
        made = [(c[0], c[1], arguments_of(c[2])) for c in calls.values()]
        looked_up(place, made, cities=2)

    def looks_up(self, words: str, cities: int) -> Case:
        def tried(place: Place) -> None:
            messages: list[Any] = [user(place.words(words))]
            more: dict[str, Any] = {"tools": [CHAT_TOOL]}
            if "think" in words:
                more["reasoning_format"] = "parsed"
            choice = self.final(place, messages, **more)
            same("finish", choice.finish_reason, "tool_calls")
            calls = choice.message.tool_calls
            made = [(c.id, c.function.name, arguments_of(c.function.arguments)) for c in calls]
            looked_up(place, made, cities=cities)
            messages.append(choice.message.to_dict())
            messages += [
                {"role": "tool", "tool_call_id": identity, "content": result_of(given["city"])}
                for identity, _, given in made
            ]
            text = self.final(place, messages, **more).message.content
            finished(place, text, cities=cities)

        return tried

    def thought(self, place: Place) -> None:
        choice = self.final(place, [user("[think]")], tools=[CHAT_TOOL], reasoning_format="parsed")
        told = choice.message.reasoning
        # an upstream of chat's own has its own field, and its bytes pass untouched
        told = choice.message.reasoning_content if place.dialect == "chat" else told
        same("thinking", told, THOUGHT)

    def image(self, place: Place) -> None:
        parts = [
            {"type": "text", "text": "[picture]"},
            {"type": "image_url", "image_url": {"url": picture_url()}},
        ]
        choice = self.final(place, [{"role": "user", "content": parts}])
        same("text", choice.message.content, told_picture())

    def error(self, place: Place, words: str, name: str, key: str = KEY) -> Any:
        asked = self.client(place, key=key).chat.completions
        wanted: type[Exception] = getattr(self.errors, name)
        return raised(wanted, lambda: asked.create(model=MODEL, messages=[user(words)]))

    def unauthorized(self, place: Place) -> None:
        error = self.error(place, "[say]", "AuthenticationError", "wrong")
        holds(f"it says why: {error}", "the key is wrong" in str(error))

    def raises(self, words: str, name: str) -> Case:
        def tried(place: Place) -> None:
            self.error(place, words, name)

        return tried

    def limited(self, place: Place) -> None:
        error = self.error(place, f"[429 {tag()}]", "RateLimitError")
        same("retry-after", error.response.headers.get("retry-after"), "1")

    def limited_then_again(self, place: Place) -> None:
        used = tag()
        asked = self.client(place, retries=1).chat.completions
        answer = asked.create(model=MODEL, messages=[user(f"[429 {used}]")])
        same("text", answer.choices[0].message.content, SAID)
        waited(place, used)

    def fails_inside(self, place: Place) -> None:
        wanted: type[Exception] = self.errors.APIError
        raised(wanted, lambda: streamed(self.client(place), messages=[user("[fails]")]))

    def models(self, place: Place) -> None:
        same("models", [model.id for model in self.client(place).models.list().data], [MODEL])

    def cases(self) -> Mapping[str, Case]:
        return {
            "whole": self.whole,
            "streamed": self.streams,
            "a tool": self.looks_up("[tool]", 1),
            "parallel tools": self.looks_up("[parallel]", 2),
            "parallel tools, streamed": self.streams_tools,
            "an image": self.image,
            "thinking shown": self.thought,
            "thinking there and back": self.looks_up("[think]", 1),
            "401": self.unauthorized,
            "404": self.raises("[404]", "NotFoundError"),
            "400": self.raises("[unheard]", "BadRequestError"),
            "429": self.limited,
            "429, then again": self.limited_then_again,
            "500": self.raises("[500]", "InternalServerError"),
            "overloaded": self.raises("[overloaded]", "InternalServerError"),
            "an error inside a stream": self.fails_inside,
            "models": self.models,
        }


def groq_client(place: Place, key: str, retries: int) -> Any:
    made = groq.Groq(base_url=place.base, api_key=key, max_retries=retries, timeout=30)
    return place.kept(made)


def cerebras_client(place: Place, key: str, retries: int) -> Any:
    made = cerebras.Cerebras(base_url=place.base, api_key=key, max_retries=retries, timeout=30)
    return place.kept(made)


GROQ = Client("groq", _Sdk("groq", groq_client, groq).cases())
CEREBRAS = Client("cerebras-cloud-sdk", _Sdk("cerebras", cerebras_client, cerebras).cases())
