"""What OpenAI's chat completions refuse of a request, as strictly as the API and its likes do."""

import re
from typing import Any

from reflexarc.sim.faulty.shapes import (
    NAMES,
    a_flag,
    a_list,
    a_number,
    a_schema,
    a_text,
    a_whole,
    an_object,
    fits,
    named,
    one_of,
    only,
    refuse,
)

_MEMBERS = named(
    "model messages tools tool_choice parallel_tool_calls stream stream_options max_tokens"
    " max_completion_tokens temperature top_p seed presence_penalty frequency_penalty stop n"
    " logit_bias logprobs top_logprobs user metadata service_tier store reasoning_effort"
    " verbosity response_format prediction modalities audio safety_identifier prompt_cache_key"
    " prompt_cache_retention functions function_call web_search_options"
)
_IDS = re.compile(r"[\x20-\x7e]{1,40}")
_ROLES = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    # The members on thinking are those of its likes.
    "assistant": {
        "role", "content", "name", "refusal", "audio", "tool_calls", "function_call",
        "reasoning_content", "reasoning_details",
    },
    "tool": {"role", "content", "tool_call_id"},
    "function": {"role", "content", "name"},
}  # fmt: skip
_PARTS = {
    "text": {"type", "text"},
    "image_url": {"type", "image_url"},
    "input_audio": {"type", "input_audio"},
    "file": {"type", "file"},
    "refusal": {"type", "refusal"},
}


def check(body: dict[str, Any]) -> None:
    """Raises `RequestError`."""
    only(body, _MEMBERS, "")
    a_text(body.get("model"), "model", least=1)
    messages = a_list(body.get("messages"), "messages", least=1)
    tools = a_list(body["tools"], "tools", least=1) if "tools" in body else []
    for at, tool in enumerate(tools):
        _tool(tool, f"tools[{at}]")
    _settings(body, bool(tools))
    _conversation(messages)


def _conversation(messages: list[Any]) -> None:
    waiting: set[str] = set()
    for at, value in enumerate(messages):
        path = f"messages[{at}]"
        role = an_object(value, path).get("role")
        one_of(role, _ROLES, f"{path}.role")
        message = only(value, _ROLES[str(role)], path)
        if role == "tool":
            identity = fits(message.get("tool_call_id"), _IDS, f"{path}.tool_call_id")
            if identity not in waiting:
                raise refuse("answers no tool call before it", f"{path}.tool_call_id")
            waiting.discard(identity)
            _content(message.get("content"), f"{path}.content", {"text"})
            continue
        if waiting:
            raise refuse(f"tool calls {sorted(waiting)} have no result", path)
        if role == "assistant":
            waiting = _assistant(message, path)
        elif role != "function":
            kinds = {"text"} if role != "user" else {"text", "image_url", "input_audio", "file"}
            _content(message.get("content"), f"{path}.content", kinds)
    if waiting:
        raise refuse(f"tool calls {sorted(waiting)} have no result", "messages")


def _assistant(message: dict[str, Any], path: str) -> set[str]:
    calls = a_list(message["tool_calls"], f"{path}.tool_calls", least=1) if (
        "tool_calls" in message
    ) else []  # fmt: skip
    said = [message.get(name) for name in ("content", "refusal", "audio", "function_call")]
    if not calls and all(one is None for one in said):
        raise refuse("content or tool_calls must be given", path)
    if message.get("content") is not None:
        _content(message["content"], f"{path}.content", {"text", "refusal"})
    ids: set[str] = set()
    for at, value in enumerate(calls):
        where = f"{path}.tool_calls[{at}]"
        call = only(value, {"id", "type", "function", "custom", "extra_content"}, where)
        identity = fits(call.get("id"), _IDS, f"{where}.id")
        if identity in ids:
            raise refuse("the same id twice", f"{where}.id")
        ids.add(identity)
        one_of(call.get("type"), {"function", "custom"}, f"{where}.type")
        kind, text = ("custom", "input") if call["type"] == "custom" else ("function", "arguments")
        inner = only(call.get(kind), {"name", text}, f"{where}.{kind}")
        fits(inner.get("name"), NAMES, f"{where}.{kind}.name")
        a_text(inner.get(text), f"{where}.{kind}.{text}")
    return ids


def _content(value: Any, path: str, kinds: set[str]) -> None:
    if isinstance(value, str):
        return
    for at, one in enumerate(a_list(value, path, least=1)):
        where = f"{path}[{at}]"
        kind = an_object(one, where).get("type")
        one_of(kind, kinds, f"{where}.type")
        part = only(one, _PARTS[str(kind)], where)
        if kind in ("text", "refusal"):
            a_text(part.get(str(kind)), f"{where}.{kind}")
        elif kind == "image_url":
            image = only(part.get(kind), {"url", "detail"}, f"{where}.{kind}")
            url = a_text(image.get("url"), f"{where}.{kind}.url")
            if not url.startswith(("https://", "http://", "data:image/")):
                raise refuse("must be a URL or a data URL of an image", f"{where}.{kind}.url")
        elif kind == "input_audio":
            audio = only(part.get(kind), {"data", "format"}, f"{where}.{kind}")
            one_of(audio.get("format"), {"wav", "mp3"}, f"{where}.{kind}.format")
        else:
            only(part.get("file"), {"file_id", "filename", "file_data"}, f"{where}.file")


def _tool(value: Any, path: str) -> None:
    tool = only(value, {"type", "function", "custom"}, path)
    one_of(tool.get("type"), {"function", "custom"}, f"{path}.type")
    if tool["type"] == "custom":
        only(tool.get("custom"), {"name", "description", "format"}, f"{path}.custom")
        return
    members = {"name", "description", "parameters", "strict"}
    function = only(tool.get("function"), members, f"{path}.function")
    fits(function.get("name"), NAMES, f"{path}.function.name")
    if "strict" in function:
        a_flag(function["strict"], f"{path}.function.strict")
    if "parameters" in function:
        strict = function.get("strict") is True
        a_schema(function["parameters"], f"{path}.function.parameters", strict=strict)


def _settings(body: dict[str, Any], has_tools: bool) -> None:
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in body and not has_tools and "functions" not in body:
            raise refuse("is only allowed when tools are given", name)
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        one_of(choice, {"auto", "none", "required"}, "tool_choice")
    elif choice is not None:
        fields = only(choice, {"type", "function", "custom", "allowed_tools"}, "tool_choice")
        one_of(fields.get("type"), {"function", "custom", "allowed_tools"}, "tool_choice.type")
        an_object(fields.get(fields["type"]), f"tool_choice.{fields['type']}")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise refuse("is not to be given beside max_completion_tokens", "max_tokens")
    for name in ("max_tokens", "max_completion_tokens", "n"):
        if name in body:
            a_whole(body[name], name, 1)
    for name, least, most in (
        ("temperature", 0, 2),
        ("top_p", 0, 1),
        ("presence_penalty", -2, 2),
        ("frequency_penalty", -2, 2),
    ):
        if name in body:
            a_number(body[name], name, least, most)
    if isinstance(body.get("stop"), list) and not 1 <= len(body["stop"]) <= 4:
        raise refuse("must be 1 to 4 strings", "stop")
    if "stream_options" in body and body.get("stream") is not True:
        raise refuse("is only allowed when stream is true", "stream_options")
    if "metadata" in body and body.get("store") is not True:
        raise refuse("is only allowed when store is true", "metadata")
    if "reasoning_effort" in body:
        efforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
        one_of(body["reasoning_effort"], efforts, "reasoning_effort")
    if "service_tier" in body:
        one_of(body["service_tier"], {"auto", "default", "flex", "priority"}, "service_tier")
    if "response_format" in body:
        form = an_object(body["response_format"], "response_format")
        one_of(form.get("type"), {"text", "json_object", "json_schema"}, "response_format.type")
