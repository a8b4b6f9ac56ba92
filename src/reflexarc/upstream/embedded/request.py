"""A chat request as the embedded engine takes it. Pure: bytes in, a request or an error out.

Fields that would change the answer and that the engine cannot do are refused with 400; those that
cannot change it (`user`, `metadata`, `store`, ...) and unknown ones are passed over, as other
OpenAI-compatible servers do. docs/local.md lists them.
"""

from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec

from reflexarc.steps import Message, ToolSpec
from reflexarc.steps.errors import InputError, RequestError
from reflexarc.wire.chat import message_from_chat, tool_from_chat
from reflexarc.wire.json import decode_strict

MAX_STOPS = 4
MAX_TOOLS = 64
DEFAULT_ANSWER_TOKENS = 256
DEFAULT_CALL_TOKENS = 512


class UnsupportedError(InputError):
    """A well-formed request for what this engine cannot do."""

    code = "unsupported"

    def __init__(self, message: str, param: str) -> None:
        super().__init__(message)
        self.param = param


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Given(msgspec.Struct):
    messages: list[Any]
    model: str
    tools: list[Any] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    response_format: dict[str, Any] | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: dict[str, float] | None = None
    modalities: list[str] | None = None
    audio: Any = None
    functions: Any = None
    function_call: Any = None
    web_search_options: Any = None
    prompt_cache_key: str | None = None


class ChatRequest(msgspec.Struct, frozen=True):
    """What is left of a request. `choice`: `auto` (a tool or an answer in words), `none`, or
    `required` (one of `tools`, which a named choice leaves alone with one). `answer_schema`: JSON
    schema that an answer in words must fit. `sampling`: fields as llama.cpp names them.
    `cache_key`: a name of the session, empty where it has none."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    offered: tuple[ToolSpec, ...]
    choice: Literal["auto", "none", "required"]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    stop: tuple[str, ...]
    sampling: dict[str, float]
    answer_schema: dict[str, Any] | None
    cache_key: str = ""


def read_request(body: bytes) -> ChatRequest:
    """Raises `MalformedError`, `RequestError` (422; the HTTP side says 400, as OpenAI does) or
    `UnsupportedError`."""
    raw = decode_strict(body)
    try:
        given = msgspec.convert(raw, _Given)
    except msgspec.ValidationError as error:
        raise RequestError(f"the body does not fit a chat request: {error}") from error
    _refuse_unsupported(given)
    if not given.messages:
        raise RequestError("messages must hold at least one message", "messages")
    messages = tuple(
        message_from_chat(_object(value, f"messages[{i}]"), f"messages[{i}]")
        for i, value in enumerate(given.messages)
    )
    for index, message in enumerate(messages):
        if message.opaque:
            path = f"messages[{index}].content"
            raise UnsupportedError(f"{path}: this engine reads text only", path)
    tools = _tools(given.tools or [])
    choice, offered = _choice(given.tool_choice, tools)
    limit = given.max_completion_tokens or given.max_tokens
    _in_range(given)
    return ChatRequest(
        messages=messages,
        tools=tools,
        offered=offered,
        choice=choice,
        stream=bool(given.stream),
        include_usage=bool(given.stream_options and given.stream_options.include_usage),
        max_tokens=limit,
        stop=_stops(given.stop),
        sampling=_sampling(given),
        answer_schema=_answer_schema(given.response_format),
        cache_key=given.prompt_cache_key or "",
    )


def _refuse_unsupported(given: _Given) -> None:
    asked = {
        "n": given.n not in (None, 1),
        "logprobs": bool(given.logprobs),
        "top_logprobs": bool(given.top_logprobs),
        "logit_bias": bool(given.logit_bias),
        "modalities": given.modalities not in (None, ["text"]),
        "audio": given.audio is not None,
        "functions": bool(given.functions),
        "function_call": given.function_call is not None,
        "web_search_options": given.web_search_options is not None,
    }
    for name, is_asked in asked.items():
        if is_asked:
            hint = "; use tools and tool_choice" if name.startswith("function") else ""
            raise UnsupportedError(f"{name}: the embedded engine cannot do this{hint}", name)


def _tools(values: list[Any]) -> tuple[ToolSpec, ...]:
    if len(values) > MAX_TOOLS:
        raise UnsupportedError(f"tools: at most {MAX_TOOLS}, not {len(values)}", "tools")
    tools: list[ToolSpec] = []
    for index, value in enumerate(values):
        path = f"tools[{index}]"
        tool = tool_from_chat(_object(value, path), path)
        if any(tool.name == other.name for other in tools):
            raise RequestError(f"{path}: there are two tools named {tool.name!r}", path)
        tools.append(tool)
    return tuple(tools)


def _choice(
    value: Any, tools: tuple[ToolSpec, ...]
) -> tuple[Literal["auto", "none", "required"], tuple[ToolSpec, ...]]:
    """The choice, and the tools that it leaves."""
    if value is None:
        value = "auto"
    if value == "none" or (value == "auto" and not tools):
        return "none", ()
    if not tools:
        raise RequestError("tool_choice is given without tools", "tool_choice")
    if value in ("auto", "required"):
        return value, tools
    name = _named(value)
    if name is None:
        raise RequestError(
            "tool_choice must be auto, none, required or "
            '{"type": "function", "function": {"name": NAME}}',
            "tool_choice",
        )
    named = tuple(tool for tool in tools if tool.name == name)
    if not named:
        raise RequestError(f"tool_choice names {name!r}, which is not in tools", "tool_choice")
    return "required", named


def _named(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    function = fields.get("function")
    if fields.get("type") != "function" or not isinstance(function, dict):
        return None
    name = cast(dict[str, Any], function).get("name")
    return name if isinstance(name, str) else None


def _in_range(given: _Given) -> None:
    ranges: dict[str, tuple[float | None, float, float]] = {
        "max_tokens": (given.max_tokens, 1, 1_000_000),
        "max_completion_tokens": (given.max_completion_tokens, 1, 1_000_000),
        "temperature": (given.temperature, 0, 2),
        "top_p": (given.top_p, 0, 1),
        "frequency_penalty": (given.frequency_penalty, -2, 2),
        "presence_penalty": (given.presence_penalty, -2, 2),
    }
    for name, (value, low, high) in ranges.items():
        if value is not None and not low <= value <= high:
            raise RequestError(f"{name} must be from {low:g} to {high:g}, not {value}", name)


def _sampling(given: _Given) -> dict[str, float]:
    """Greedy unless a temperature is given: the same request gives the same answer."""
    sampling: dict[str, float] = {"temperature": given.temperature or 0.0}
    if given.top_p is not None:
        sampling["top_p"] = given.top_p
    if given.frequency_penalty is not None:
        sampling["frequency_penalty"] = given.frequency_penalty
    if given.presence_penalty is not None:
        sampling["presence_penalty"] = given.presence_penalty
    if given.seed is not None:
        sampling["seed"] = given.seed % 2**32
    return sampling


def _stops(value: str | list[str] | None) -> tuple[str, ...]:
    stops = (value,) if isinstance(value, str) else tuple(value or ())
    if len(stops) > MAX_STOPS or not all(stops):
        raise RequestError(f"stop must be up to {MAX_STOPS} non-empty strings", "stop")
    return stops


def _answer_schema(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is None or value.get("type") == "text":
        return None
    if value.get("type") == "json_object":
        return {"type": "object"}
    wrapped: Any = value.get("json_schema")
    schema: Any = (
        cast(Mapping[str, Any], wrapped).get("schema") if isinstance(wrapped, dict) else None
    )
    if value.get("type") != "json_schema" or not isinstance(schema, dict):
        raise RequestError(
            "response_format must be of type text, json_object or json_schema with a schema",
            "response_format",
        )
    return cast(dict[str, Any], schema)


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RequestError(f"{path} must be an object", path)
    return cast(dict[str, Any], value)
