"""How each client asks a model that says what it likes: a question, whole and streamed, and a
conversation with a call and its result."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import anthropic as anthropic_sdk
import groq as groq_sdk
import openai
from google.genai import errors, types
from pydantic_ai import Agent

from acceptance import wire_anthropic, wire_google, wire_groq, wire_openai, wire_pydantic_ai
from acceptance.wire_anthropic import NAMED_TOOL
from acceptance.wire_cells import Place, raised, same
from acceptance.wire_openai import CHAT_TOOL, user
from acceptance.wire_openai_responses import FLAT_TOOL
from acceptance.wire_upstream import KEY, MODEL

LIMIT = 16
"""Tokens of an answer, the fewest that can be asked for in every dialect."""
_TOO_LONG = "word " * 6000
_ARGUMENTS = '{"city":"Paris","days":2}'
_RESULT = "sunny, 21 degrees"


class Told(NamedTuple):
    """An answer. `cut`: the client is told that it was cut; `pieces` where it streamed."""

    text: str
    cut: bool
    prompt: int
    output: int
    pieces: int | None = None


Ask = Callable[[Place, str, bool], Told]
Later = Callable[[Place], Told]

# --- chat ---------------------------------------------------------------------------------------


def _chat_told(completions: Any, messages: list[Any], stream: bool, **more: Any) -> Told:
    asked = {"model": MODEL, "messages": messages, "max_tokens": LIMIT, **more}
    if not stream:
        answer = completions.create(**asked)
        choice, usage = answer.choices[0], answer.usage
        cut = choice.finish_reason == "length"
        return Told(choice.message.content, cut, usage.prompt_tokens, usage.completion_tokens)
    pieces: list[str] = []
    finish, usage = "", None
    for chunk in completions.create(**asked, stream=True):
        for choice in chunk.choices or ():
            pieces += [choice.delta.content] if choice.delta.content else []
            finish = choice.finish_reason or finish
        usage = chunk.usage or usage
    cut = finish == "length"
    if usage is None:
        raise AssertionError("no usage came")
    text = "".join(pieces)
    return Told(text, cut, usage.prompt_tokens, usage.completion_tokens, len(pieces))


_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": _ARGUMENTS},
}
_CHAT_HISTORY: list[Any] = [
    {"role": "system", "content": "Be brief."},
    user("What is the weather in Paris?"),
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": _RESULT},
]
_WITH_USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


def chat(place: Place, words: str, stream: bool) -> Told:
    more = _WITH_USAGE if stream else {}
    completions = wire_openai.client(place).chat.completions
    return _chat_told(completions, [user(words)], stream, **more)


def chat_later(place: Place) -> Told:
    completions = wire_openai.client(place).chat.completions
    return _chat_told(completions, _CHAT_HISTORY, True, tools=[CHAT_TOOL], **_WITH_USAGE)


def chat_wrong(place: Place) -> None:
    wire_openai.chat_error(place, "Hello", openai.AuthenticationError, "wrong")
    wire_openai.chat_error(place, _TOO_LONG, openai.BadRequestError)


def groq(place: Place, words: str, stream: bool) -> Told:
    completions = _groq(place).chat.completions
    return _chat_told(completions, [user(words)], stream, **_usage_asked(stream))


def groq_later(place: Place) -> Told:
    completions = _groq(place).chat.completions
    more = _usage_asked(True)
    return _chat_told(completions, _CHAT_HISTORY, True, tools=[CHAT_TOOL], **more)


def groq_wrong(place: Place) -> None:
    for key, words, wanted in (
        ("wrong", "Hello", groq_sdk.AuthenticationError),
        (KEY, _TOO_LONG, groq_sdk.BadRequestError),
    ):
        completions = _groq(place, key).chat.completions
        messages = [user(words)]
        raised(wanted, lambda ask=completions, given=messages: _chat_told(ask, given, False))


def _groq(place: Place, key: str = KEY) -> Any:
    return wire_groq.groq_client(place, key, 0)


def cerebras(place: Place, words: str, stream: bool) -> Told:
    completions = wire_groq.cerebras_client(place, KEY, 0).chat.completions
    return _chat_told(completions, [user(words)], stream, **(_WITH_USAGE if stream else {}))


def _usage_asked(stream: bool) -> dict[str, Any]:
    # its client has no name for this member
    return {"extra_body": _WITH_USAGE} if stream else {}


# --- responses ----------------------------------------------------------------------------------


def _response_told(answer: Any, pieces: int | None = None) -> Told:
    cut = answer.status == "incomplete"
    usage = answer.usage
    return Told(answer.output_text, cut, usage.input_tokens, usage.output_tokens, pieces)


def _responses(place: Place, given: Any, stream: bool, **more: Any) -> Told:
    asked = wire_openai.client(place).responses
    more |= {"model": MODEL, "input": given, "max_output_tokens": LIMIT}
    if not stream:
        return _response_told(asked.create(**more))
    pieces, last = 0, None
    for event in asked.create(**more, stream=True):
        pieces += event.type == "response.output_text.delta"
        last = getattr(event, "response", last)
    return _response_told(last, pieces)


def responses(place: Place, words: str, stream: bool) -> Told:
    return _responses(place, words, stream)


def responses_later(place: Place) -> Told:
    call = {"type": "function_call", "call_id": "call_1", "name": "get_weather"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": _RESULT}
    given = [user("What is the weather in Paris?"), {**call, "arguments": _ARGUMENTS}, output]
    return _responses(place, given, False, tools=[FLAT_TOOL], instructions="Be brief.")


def responses_wrong(place: Place) -> None:
    asked = wire_openai.client(place, key="wrong").responses
    raised(openai.AuthenticationError, lambda: asked.create(model=MODEL, input="Hello"))
    asked = wire_openai.client(place).responses
    raised(openai.BadRequestError, lambda: asked.create(model=MODEL, input=_TOO_LONG))


# --- messages -----------------------------------------------------------------------------------


def _messages(place: Place, given: list[Any], stream: bool, **more: Any) -> Told:
    asked = wire_anthropic.client(place).messages
    more |= {"model": MODEL, "messages": given, "max_tokens": LIMIT}
    pieces = None
    if stream:
        with asked.stream(**more) as streaming:
            pieces = len(list(streaming.text_stream))
            message = streaming.get_final_message()
    else:
        message = asked.create(**more)
    text = "".join(block.text for block in message.content if block.type == "text")
    usage = message.usage
    prompt = usage.input_tokens + (usage.cache_read_input_tokens or 0)
    return Told(text, message.stop_reason == "max_tokens", prompt, usage.output_tokens, pieces)


def messages(place: Place, words: str, stream: bool) -> Told:
    return _messages(place, [user(words)], stream)


def messages_later(place: Place) -> Told:
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather"}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": _RESULT}
    given = [
        user("What is the weather in Paris?"),
        {"role": "assistant", "content": [{**call, "input": {"city": "Paris", "days": 2}}]},
        {"role": "user", "content": [result]},
    ]
    return _messages(place, given, True, tools=[NAMED_TOOL], system="Be brief.")


def messages_wrong(place: Place) -> None:
    for key, words, wanted in (
        ("wrong", "Hello", anthropic_sdk.AuthenticationError),
        (KEY, _TOO_LONG, anthropic_sdk.BadRequestError),
    ):
        asked = wire_anthropic.client(place, key=key).messages
        given: dict[str, Any] = {"model": MODEL, "max_tokens": LIMIT, "messages": [user(words)]}
        raised(wanted, lambda ask=asked, given=given: ask.create(**given))


def messages_count(place: Place) -> int:
    asked = wire_anthropic.client(place).messages
    told = asked.count_tokens(model=MODEL, messages=[user("What is the capital of France?")])
    return told.input_tokens


# --- gemini -------------------------------------------------------------------------------------


def _google(place: Place, contents: Any, stream: bool, **config: Any) -> Told:
    config["max_output_tokens"] = LIMIT
    asked: dict[str, Any] = {"model": MODEL, "contents": contents, "config": config}
    with wire_google.client(place) as made:
        if stream:
            chunks = list(made.models.generate_content_stream(**asked))
        else:
            chunks = [made.models.generate_content(**asked)]
    text = "".join(chunk.text or "" for chunk in chunks)
    last = chunks[-1]
    usage = last.usage_metadata
    cut = last.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS
    pieces = len(chunks) if stream else None
    return Told(text, cut, usage.prompt_token_count, usage.candidates_token_count, pieces)


def google(place: Place, words: str, stream: bool) -> Told:
    return _google(place, words, stream)


def google_later(place: Place) -> Told:
    call = types.FunctionCall(name="get_weather", args={"city": "Paris", "days": 2})
    result = types.FunctionResponse(name="get_weather", response={"result": _RESULT})
    contents = [
        types.Content(role="user", parts=[types.Part(text="What is the weather in Paris?")]),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(role="user", parts=[types.Part(function_response=result)]),
    ]
    return _google(place, contents, True, tools=wire_google.TOOLS, system_instruction="Be brief.")


def google_wrong(place: Place) -> None:
    for key, words, status in (("wrong", "Hello", 401), (KEY, _TOO_LONG, 400)):
        with wire_google.client(place, key=key) as made:
            ask = made.models.generate_content
            given = {"model": MODEL, "contents": words}
            error = raised(errors.ClientError, lambda ask=ask, given=given: ask(**given))
        same("status", error.code, status)


def google_count(place: Place) -> int:
    with wire_google.client(place) as made:
        told = made.models.count_tokens(model=MODEL, contents="What is the capital of France?")
    return told.total_tokens


# --- pydantic-ai --------------------------------------------------------------------------------


def _pydantic(make: Any) -> Ask:
    async def told(place: Place, words: str, stream: bool) -> Told:
        model, close = make(place, KEY)
        agent: Agent[None, str] = Agent(model, model_settings={"max_tokens": LIMIT})
        pieces = None
        try:
            if stream:
                async with agent.run_stream(words) as result:
                    texts = [
                        text async for text in result.stream_text(delta=True, debounce_by=None)
                    ]
                    text, pieces = "".join(texts), len(texts)
                    usage, finish = result.usage, result.response.finish_reason
            else:
                whole = await agent.run(words)
                text, usage, finish = whole.output, whole.usage, whole.response.finish_reason
        finally:
            await close()
        return Told(text, finish == "length", usage.input_tokens, usage.output_tokens, pieces)

    return lambda place, words, stream: asyncio.run(told(place, words, stream))


pydantic_chat = _pydantic(wire_pydantic_ai.chat_model)
pydantic_responses = _pydantic(wire_pydantic_ai.responses_model)
pydantic_messages = _pydantic(wire_pydantic_ai.anthropic_model)
pydantic_google = _pydantic(wire_pydantic_ai.google_model)
