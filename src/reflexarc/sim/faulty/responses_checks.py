"""What OpenAI's responses API refuses of a request."""

import re
from collections.abc import Callable
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

Signed = Callable[[str], bool]
"""Whether what a request brings back as signed was signed here."""

_MEMBERS = named(
    "model input instructions tools tool_choice parallel_tool_calls stream stream_options"
    " max_output_tokens temperature top_p top_logprobs user metadata service_tier store"
    " reasoning text include prompt_cache_key prompt_cache_retention safety_identifier"
    " truncation background conversation previous_response_id prompt max_tool_calls"
    " context_management"
)
_IDS = re.compile(r"[\x20-\x7e]{1,64}")
_INCLUDE = {
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "file_search_call.results",
    "web_search_call.action.sources",
    "web_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
}
_INPUT = {
    "input_text": {"type", "text"},
    "input_image": {"type", "image_url", "file_id", "detail"},
    "input_file": {"type", "file_id", "filename", "file_data", "file_url", "detail"},
}
_OUTPUT = {
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}
_HOSTED = re.compile(r"[a-z_]+_call(_output)?|item_reference|compaction|mcp_[a-z_]+")


def check(body: dict[str, Any], signed: Signed) -> None:
    """Raises `RequestError`."""
    only(body, _MEMBERS, "")
    a_text(body.get("model"), "model", least=1)
    tools = a_list(body["tools"], "tools") if "tools" in body else []
    for at, tool in enumerate(tools):
        _tool(tool, f"tools[{at}]")
    _settings(body, bool(tools))
    given = body.get("input")
    if isinstance(given, str):
        return
    least = 0 if "previous_response_id" in body or "conversation" in body else 1
    goes_on = "previous_response_id" in body or "conversation" in body
    _items(a_list(given, "input", least=least), signed, goes_on)


def _items(items: list[Any], signed: Signed, goes_on: bool) -> None:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    for at, value in enumerate(items):
        path = f"input[{at}]"
        item = an_object(value, path)
        kind = item.get("type", "message")
        if kind == "message":
            _message(item, path)
        elif kind in ("function_call", "custom_tool_call"):
            text = "arguments" if kind == "function_call" else "input"
            only(item, {"type", "id", "call_id", "name", "status", "namespace", text}, path)
            identity = fits(item.get("call_id"), _IDS, f"{path}.call_id")
            if identity in calls:
                raise refuse("the same call_id twice", f"{path}.call_id")
            calls[identity] = path
            fits(item.get("name"), NAMES, f"{path}.name")
            a_text(item.get(text), f"{path}.{text}")
        elif kind in ("function_call_output", "custom_tool_call_output"):
            only(item, {"type", "id", "call_id", "output", "status"}, path)
            identity = fits(item.get("call_id"), _IDS, f"{path}.call_id")
            if identity not in calls and not goes_on:
                raise refuse("no tool call found for this output", f"{path}.call_id")
            answered.add(identity)
            if not isinstance(item.get("output"), str):
                _parts(item.get("output"), f"{path}.output", _INPUT)
        elif kind == "reasoning":
            _reasoning(item, path, signed)
            if at + 1 == len(items):
                raise refuse("reasoning without its required following item", path)
        elif not isinstance(kind, str) or _HOSTED.fullmatch(kind) is None:
            raise refuse("unknown type of item", f"{path}.type")
    for identity, path in calls.items():
        if identity not in answered:
            raise refuse(f"no tool output found for function call {identity}", path)


def _message(item: dict[str, Any], path: str) -> None:
    only(item, {"type", "id", "role", "content", "status", "phase"}, path)
    one_of(item.get("role"), {"user", "assistant", "system", "developer"}, f"{path}.role")
    if isinstance(item.get("content"), str):
        return
    kinds = _OUTPUT if item["role"] == "assistant" else _INPUT
    _parts(item.get("content"), f"{path}.content", kinds)


def _parts(value: Any, path: str, kinds: dict[str, set[str]]) -> None:
    for at, one in enumerate(a_list(value, path, least=1)):
        where = f"{path}[{at}]"
        kind = an_object(one, where).get("type")
        one_of(kind, kinds, f"{where}.type")
        part = only(one, kinds[str(kind)], where)
        if kind in ("input_text", "output_text"):
            a_text(part.get("text"), f"{where}.text")
        elif kind == "input_image":
            url = part.get("image_url")
            if "file_id" not in part:
                a_text(url, f"{where}.image_url", least=1)


def _reasoning(item: dict[str, Any], path: str, signed: Signed) -> None:
    only(item, {"type", "id", "summary", "content", "encrypted_content", "status"}, path)
    for at, one in enumerate(a_list(item.get("summary"), f"{path}.summary")):
        only(one, {"type", "text"}, f"{path}.summary[{at}]")
    if item.get("content"):
        raise refuse("array too long: a maximum length of 0", f"{path}.content")
    given = item.get("encrypted_content")
    if given is not None and not signed(a_text(given, f"{path}.encrypted_content")):
        raise refuse("the encrypted content could not be verified", f"{path}.encrypted_content")


def _tool(value: Any, path: str) -> None:
    tool = an_object(value, path)
    kind = a_text(tool.get("type"), f"{path}.type", least=1)
    if kind == "custom":
        only(tool, {"type", "name", "description", "format"}, path)
    if kind != "function":
        return
    only(tool, {"type", "name", "description", "parameters", "strict"}, path)
    fits(tool.get("name"), NAMES, f"{path}.name")
    if tool.get("strict") is not None:
        a_flag(tool["strict"], f"{path}.strict")
    if tool.get("parameters") is not None:
        # Left out, strictness is brought about by the API itself.
        strict = tool.get("strict") is True
        a_schema(tool["parameters"], f"{path}.parameters", strict=strict)


def _settings(body: dict[str, Any], has_tools: bool) -> None:
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        one_of(choice, {"auto", "none", "required"}, "tool_choice")
        if choice == "required" and not has_tools:
            raise refuse("must not be required without tools", "tool_choice")
    elif choice is not None:
        an_object(choice, "tool_choice")
    if "max_output_tokens" in body:
        a_whole(body["max_output_tokens"], "max_output_tokens", 16)
    if "temperature" in body:
        a_number(body["temperature"], "temperature", 0, 2)
    if "top_p" in body:
        a_number(body["top_p"], "top_p", 0, 1)
    for at, one in enumerate(a_list(body.get("include", []), "include")):
        one_of(one, _INCLUDE, f"include[{at}]")
    if "metadata" in body:
        for name, held in an_object(body["metadata"], "metadata").items():
            a_text(held, f"metadata.{name}", most=512)
    if "user" in body:
        a_text(body["user"], "user", most=64)
    if "prompt_cache_key" in body:
        a_text(body["prompt_cache_key"], "prompt_cache_key", most=64)
    if "reasoning" in body:
        reasoning = only(body["reasoning"], {"effort", "summary", "context", "mode"}, "reasoning")
        efforts = {None, "none", "minimal", "low", "medium", "high", "xhigh", "max"}
        one_of(reasoning.get("effort"), efforts, "reasoning.effort")
        one_of(reasoning.get("summary"), {None, "auto", "concise", "detailed"}, "reasoning.summary")
    if "text" in body:
        text = only(body["text"], {"format", "verbosity"}, "text")
        if "format" in text:
            form = an_object(text["format"], "text.format")
            one_of(form.get("type"), {"text", "json_object", "json_schema"}, "text.format.type")
            if form["type"] == "json_schema":
                fits(form.get("name"), NAMES, "text.format.name")
                an_object(form.get("schema"), "text.format.schema")
