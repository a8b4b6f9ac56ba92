"""`pydantic-ai-slim` agents with its models of OpenAI chat and responses, Anthropic and Google."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic
from google import genai
from google.genai import types
from openai import AsyncOpenAI
from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    BinaryContent,
    ModelHTTPError,
    ThinkingPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from acceptance.wire_cells import (
    Case,
    Client,
    Place,
    finished,
    holds,
    picture,
    raised,
    result_of,
    same,
    tag,
    told_picture,
)
from acceptance.wire_upstream import KEY, MODEL, SAID, THOUGHT

Make = Callable[[Place, str], tuple[Model, Callable[[], Coroutine[Any, Any, Any]]]]
"""A model, and what closes its client."""


def get_weather(city: str, days: int) -> str:
    """The weather of a city."""
    holds(f"days are a number: {days!r}", days in (1, 2))
    return result_of(city)


@asynccontextmanager
async def _agent(make: Make, place: Place, key: str = KEY) -> AsyncGenerator[Agent[None, str]]:
    model, close = make(place, key)
    try:
        yield Agent(model, instructions="Be brief.", tools=[get_weather], retries=0)
    finally:
        await close()


def _run(asked: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asked)


def _cases(make: Make) -> Mapping[str, Case]:
    async def whole(place: Place) -> None:
        async with _agent(make, place) as agent:
            result = await agent.run("[say]")
        same("text", result.output, SAID)
        _usage(result.usage)
        same("finish", result.response.finish_reason, "stop")

    async def streamed(place: Place) -> None:
        async with _agent(make, place) as agent, agent.run_stream("[say]") as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
            same("text", "".join(pieces), SAID)
            holds(f"it came in pieces: {len(pieces)}", len(pieces) > 1)
            _usage(result.usage)

    def looks_up(words: str, cities: int) -> Case:
        async def tried(place: Place) -> None:
            async with _agent(make, place) as agent:
                result = await agent.run(place.words(words))
            finished(place, result.output, cities=cities)

        return lambda place: _run(tried(place))

    def looks_up_streamed(words: str, cities: int) -> Case:
        async def tried(place: Place) -> None:
            async with (
                _agent(make, place) as agent,
                agent.run_stream_events(place.words(words)) as events,
            ):
                last = [event async for event in events][-1]
            if not isinstance(last, AgentRunResultEvent):
                raise AssertionError(f"the run ended with {type(last).__name__}")
            finished(place, last.result.output, cities=cities)

        return lambda place: _run(tried(place))

    async def thought(place: Place) -> None:
        shown = ""
        async with _agent(make, place) as agent, agent.iter("[think]") as run:
            async for _ in run:
                for message in run.all_messages():
                    parts = [part for part in message.parts if isinstance(part, ThinkingPart)]
                    shown = "".join(part.content for part in parts) or shown
                if shown:
                    break
        same("thinking", shown, THOUGHT)

    async def image(place: Place) -> None:
        given = ["[picture]", BinaryContent(picture(), media_type="image/png")]
        async with _agent(make, place) as agent:
            result = await agent.run(given)
        same("text", result.output, told_picture())

    def raises(words: Callable[[], str], status: int, key: str = KEY) -> Case:
        def tried(place: Place) -> None:
            async def ask() -> Any:
                async with _agent(make, place, key) as agent:
                    return await agent.run(words())

            error = raised(ModelHTTPError, lambda: asyncio.run(ask()))
            same("status", error.status_code, status)

        return tried

    anthropic = make is anthropic_model
    return {
        "run": lambda place: _run(whole(place)),
        "run_stream": lambda place: _run(streamed(place)),
        "a tool": looks_up("[tool]", 1),
        "a tool, streamed": looks_up_streamed("[tool]", 1),
        "parallel tools": looks_up("[parallel]", 2),
        "parallel tools, streamed": looks_up_streamed("[parallel]", 2),
        "an image": lambda place: _run(image(place)),
        "thinking shown": lambda place: _run(thought(place)),
        "401": raises(lambda: "[say]", 401, "wrong"),
        "404": raises(lambda: "[404]", 404),
        "429": raises(lambda: f"[429 {tag()}]", 429),
        "500": raises(lambda: "[500]", 500),
        "overloaded": raises(lambda: "[overloaded]", 529 if anthropic else 503),
        "thinking there and back": looks_up("[think]", 1),
        "thinking there and back, streamed": looks_up_streamed("[think]", 1),
    }


def _usage(told: Any) -> None:
    got = told.input_tokens, told.cache_read_tokens, told.output_tokens
    same("usage", got, (120, 100, 17))


def chat_model(place: Place, key: str) -> Any:
    made = _openai(place, key)
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=made)), made.close


def responses_model(place: Place, key: str) -> Any:
    made = _openai(place, key)
    # as for OpenAI's own models that think, which it knows by their names
    profile = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=True)
    provider = OpenAIProvider(openai_client=made)
    return OpenAIResponsesModel(MODEL, provider=provider, profile=profile), made.close


def _openai(place: Place, key: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{place.base}/v1", api_key=key, max_retries=0)


def anthropic_model(place: Place, key: str) -> Any:
    made = AsyncAnthropic(base_url=place.base, api_key=key, max_retries=0)
    return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=made)), made.close


def google_model(place: Place, key: str) -> Any:
    made = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=place.base))
    return GoogleModel(MODEL, provider=GoogleProvider(client=made)), made.aio.aclose


PYDANTIC_AI = (
    Client("pydantic-ai, OpenAI chat", _cases(chat_model)),
    Client("pydantic-ai, OpenAI responses", _cases(responses_model)),
    Client("pydantic-ai, Anthropic", _cases(anthropic_model)),
    Client("pydantic-ai, Google", _cases(google_model)),
)
