"""What Anthropic's messages API refuses of a request."""

import re
from typing import Any

from reflexarc.sim.faulty.responses_checks import Signed
from reflexarc.sim.faulty.shapes import (
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
    "model messages system max_tokens tools tool_choice stream temperature top_p top_k"
    " stop_sequences metadata service_tier thinking output_config output_format container"
    " context_management mcp_servers cache_control inference_geo speed"
)
_NAMES = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_IDS = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_BLOCKS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}


def check(body: dict[str, Any], signed: Signed, *, counting: bool = False) -> None:
    """`counting`: the request asks for a count of its tokens only. Raises `RequestError`."""
    only(body, _MEMBERS, "")
    a_text(body.get("model"), "model", least=1)
    if not counting:
        a_whole(body.get("max_tokens"), "max_tokens", 1)
    elif "max_tokens" in body or "stream" in body:
        raise refuse("extra inputs are not permitted", "max_tokens")
    tools = a_list(body.get("tools", []), "tools")
    for at, tool in enumerate(tools):
        _tool(tool, f"tools[{at}]")
    _thinking(body)
    _settings(body, {an_object(tool, "tools").get("name") for tool in tools})
    messages = a_list(body.get("messages"), "messages", least=1)
    _conversation(messages, signed)
    if an_object(body.get("thinking", {}), "thinking").get("type") == "enabled":
        _goes_on_thinking(messages)


def _conversation(messages: list[Any], signed: Signed) -> None:
    waiting: list[str] = []
    before = ""
    for at, value in enumerate(messages):
        path = f"messages[{at}]"
        message = only(value, {"role", "content"}, path)
        role = message.get("role")
        one_of(role, {"user", "assistant"}, f"{path}.role")
        if at == 0 and role != "user":
            raise refuse("the first message must be the user's", path)
        if role == before:
            raise refuse(f"two turns of the {role} follow each other", path)
        before = str(role)
        content = message.get("content")
        if isinstance(content, str):
            a_text(content, f"{path}.content", least=1)
            blocks: list[Any] = []
        else:
            blocks = a_list(content, f"{path}.content", least=1)
        given = [_block(one, f"{path}.content[{n}]", signed) for n, one in enumerate(blocks)]
        _results(waiting, given, path)
        waiting = [str(one["id"]) for one in given if one["type"] == "tool_use"]
        if waiting and role != "assistant":
            raise refuse("tool_use belongs to the assistant", path)
        if len(set(waiting)) != len(waiting):
            raise refuse("tool_use ids must be unique", path)
    if waiting:
        raise refuse(f"tool_use ids without tool_result blocks after them: {waiting}", "messages")
    last = messages[-1]
    content: Any = last["content"] if last["role"] == "assistant" else ""
    if isinstance(content, str) and content != content.rstrip():
        raise refuse("must not end with blanks", f"messages[{len(messages) - 1}].content")


def _results(waiting: list[str], blocks: list[dict[str, Any]], path: str) -> None:
    """All results of the turn before, and first in this one."""
    results = [one for one in blocks if one["type"] == "tool_result"]
    if blocks[: len(results)] != results:
        raise refuse("tool_result blocks must come first", path)
    ids = [one.get("tool_use_id") for one in results]
    for identity in ids:
        if identity not in waiting or ids.count(identity) != 1:
            raise refuse(f"unexpected tool_use_id {identity} in tool_result blocks", path)
    missing = [identity for identity in waiting if identity not in ids]
    if missing:
        raise refuse(f"tool_use ids without tool_result blocks immediately after: {missing}", path)


def _block(value: Any, path: str, signed: Signed) -> dict[str, Any]:
    kind = a_text(an_object(value, path).get("type"), f"{path}.type", least=1)
    if kind not in _BLOCKS:
        if kind.startswith(("server_tool_use", "mcp_", "search_result", "container_upload")):
            return value
        if kind.endswith("_tool_result"):
            return value
        raise refuse(f"unknown type {kind}", f"{path}.type")
    block = only(value, _BLOCKS[kind], path)
    if kind == "text":
        a_text(block.get("text"), f"{path}.text", least=1)
    elif kind in ("image", "document"):
        _source(block.get("source"), f"{path}.source", kind)
    elif kind == "tool_use":
        fits(block.get("id"), _IDS, f"{path}.id")
        fits(block.get("name"), _NAMES, f"{path}.name")
        an_object(block.get("input"), f"{path}.input")
    elif kind == "tool_result":
        fits(block.get("tool_use_id"), _IDS, f"{path}.tool_use_id")
        content = block.get("content", "")
        if not isinstance(content, str):
            for at, one in enumerate(a_list(content, f"{path}.content")):
                _block(one, f"{path}.content[{at}]", signed)
    elif kind == "thinking":
        a_text(block.get("thinking"), f"{path}.thinking")
        signature = a_text(block.get("signature"), f"{path}.signature", least=1)
        if not signed(signature):
            raise refuse("invalid signature in thinking block", f"{path}.signature")
    elif not signed(a_text(block.get("data"), f"{path}.data", least=1)):
        raise refuse("invalid data in redacted_thinking block", f"{path}.data")
    return block


def _source(value: Any, path: str, kind: str) -> None:
    source = only(value, {"type", "media_type", "data", "url", "file_id", "content"}, path)
    one_of(source.get("type"), {"base64", "url", "file", "text", "content"}, f"{path}.type")
    if source["type"] == "base64":
        allowed = _IMAGES if kind == "image" else {"application/pdf"}
        one_of(source.get("media_type"), allowed, f"{path}.media_type")
        a_text(source.get("data"), f"{path}.data", least=1)


def _tool(value: Any, path: str) -> None:
    tool = an_object(value, path)
    kind = tool.get("type", "custom")
    if kind != "custom":
        return
    members = "type name description input_schema cache_control strict eager_input_streaming"
    only(tool, members.split(), path)
    fits(tool.get("name"), _NAMES, f"{path}.name")
    a_schema(tool.get("input_schema"), f"{path}.input_schema", strict=False)


def _thinking(body: dict[str, Any]) -> None:
    if "thinking" not in body:
        return
    thinking = only(body["thinking"], {"type", "budget_tokens", "display"}, "thinking")
    one_of(thinking.get("type"), {"enabled", "disabled", "adaptive"}, "thinking.type")
    if thinking["type"] == "disabled":
        return
    if thinking["type"] == "enabled":
        budget = a_whole(thinking.get("budget_tokens"), "thinking.budget_tokens", 1024)
        if budget >= body.get("max_tokens", budget + 1):
            raise refuse("max_tokens must be greater than thinking.budget_tokens", "max_tokens")
    choice = an_object(body.get("tool_choice", {"type": "auto"}), "tool_choice")
    if choice.get("type") not in ("auto", "none"):
        raise refuse("thinking may not be enabled when a tool is forced", "thinking")
    if body.get("temperature", 1) != 1:
        raise refuse("may only be 1 when thinking is enabled", "temperature")
    if "top_k" in body:
        raise refuse("must be unset when thinking is enabled", "top_k")
    if body.get("top_p", 1) < 0.95:
        raise refuse("must be at least 0.95 when thinking is enabled", "top_p")


def _goes_on_thinking(messages: list[Any]) -> None:
    """Turns with calls whose results are given now must begin with their thinking."""
    for at in range(len(messages) - 1, -1, -1):
        content: Any = messages[at]["content"]
        kinds: list[str] = [] if isinstance(content, str) else [one["type"] for one in content]
        if messages[at]["role"] == "user":
            if "tool_result" not in kinds:
                return
        elif "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking"):
            raise refuse("expected thinking first where thinking is on", f"messages[{at}]")


def _settings(body: dict[str, Any], tools: set[Any]) -> None:
    if "tool_choice" in body:
        members = {"type", "name", "disable_parallel_tool_use"}
        choice = only(body["tool_choice"], members, "tool_choice")
        one_of(choice.get("type"), {"auto", "any", "tool", "none"}, "tool_choice.type")
        if not tools and choice["type"] != "none":
            raise refuse("may only be given with tools", "tool_choice")
        if choice["type"] == "tool":
            one_of(choice.get("name"), tools, "tool_choice.name")
    if "temperature" in body:
        a_number(body["temperature"], "temperature", 0, 1)
    if "top_p" in body:
        a_number(body["top_p"], "top_p", 0, 1)
    if "top_k" in body:
        a_whole(body["top_k"], "top_k", 0)
    for at, one in enumerate(a_list(body.get("stop_sequences", []), "stop_sequences")):
        if not a_text(one, f"stop_sequences[{at}]").strip():
            raise refuse("must not be blank", f"stop_sequences[{at}]")
    only(body.get("metadata", {}), {"user_id"}, "metadata")
    if "service_tier" in body:
        one_of(body["service_tier"], {"auto", "standard_only"}, "service_tier")
    if "output_config" in body:
        config = only(body["output_config"], {"effort", "format", "task_budget"}, "output_config")
        if "effort" in config:
            efforts = {"low", "medium", "high", "xhigh", "max"}
            one_of(config["effort"], efforts, "output_config.effort")
    system = body.get("system", "x")
    if isinstance(system, str):
        a_text(system, "system", least=1)
        return
    for at, one in enumerate(a_list(system, "system")):
        block = only(one, _BLOCKS["text"], f"system[{at}]")
        a_text(block.get("text"), f"system[{at}].text", least=1)
