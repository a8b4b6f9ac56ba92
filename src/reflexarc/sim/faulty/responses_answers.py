"""Answers of the responses API as the fault upstream tells them, whole and as events."""

from typing import Any

from reflexarc.sim.faulty.script import Asked, Frame, Said, Words, inner, pieces


def read(body: dict[str, Any]) -> Asked:
    choice = body.get("tool_choice")
    effort = inner(body, "reasoning").get("effort")
    asked = Asked(
        body["model"],
        body.get("stream") is True,
        thinking=effort not in (None, "none"),
        forced=choice == "required" or isinstance(choice, dict),
    )
    asked.only = inner(body, "tool_choice").get("name", "")
    for tool in body.get("tools", []):
        if tool["type"] == "function":
            asked.tools.append((tool["name"], inner(tool, "parameters")))
    given = body["input"]
    items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_call_output"):
            asked.results.append(_text(item["output"]))
        elif kind == "message" and item["role"] == "user":
            asked.text, asked.results = _text(item["content"]), []
            if not isinstance(item["content"], str):
                asked.images = sum(part["type"] == "input_image" for part in item["content"])
    return asked


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "input_text")


def usage(said: Said) -> dict[str, Any]:
    return {
        "input_tokens": said.input,
        "input_tokens_details": {
            "cached_tokens": said.cached,
            **({"cache_write_tokens": said.written} if said.written else {}),
        },
        "output_tokens": said.output,
        "output_tokens_details": {"reasoning_tokens": said.reasoning},
        "total_tokens": said.input + said.output,
    }


def _response(said: Said, status: str, output: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "id": f"resp_{said.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": said.model,
        "error": None,
        "incomplete_details": None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **more,
    }


def _items(said: Said) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{said.id}",
                "summary": summary,
                "encrypted_content": said.signature,
            }
        )
    if said.text or said.refusal:
        part: dict[str, Any] = {"type": "output_text", "text": said.text, "annotations": []}
        if said.refusal:
            part = {"type": "refusal", "refusal": said.refusal}
        items.append(
            {
                "type": "message",
                "id": f"msg_{said.id}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for call in said.calls
    ]
    return items


def whole(said: Said, words: Words) -> dict[str, Any]:
    del words
    more: dict[str, Any] = {"usage": usage(said)} if said.told_usage else {}
    if said.stop == "length":
        more["incomplete_details"] = {"reason": "max_output_tokens"}
    status = "incomplete" if said.stop == "length" else "completed"
    return _response(said, status, _items(said), **more)


def frames(said: Said, asked: Asked, words: Words) -> list[Frame]:
    del asked
    begun = _response(said, "in_progress", [])
    told: list[tuple[str, dict[str, Any]]] = []
    if "nolifecycle" not in words:
        told = [(f"response.{name}", {"response": begun}) for name in ("created", "in_progress")]
    items = [_item(at, item, words) for at, item in enumerate(_items(said))]
    if "interleave" in words:
        calls = [one for one in items if one[0][1]["item"]["type"] == "function_call"]
        told += [event for one in items if one not in calls for event in one]
        longest = max((len(one) for one in calls), default=0)
        told += [one[n] for n in range(longest) for one in calls if n < len(one)]
    else:
        told += [event for one in items for event in one]
    if "nodone" not in words and "nofinish" not in words:
        ended = whole(said, words)
        told.append((f"response.{ended['status']}", {"response": ended}))
    return [
        Frame({"type": name, "sequence_number": at, **members}, name)
        for at, (name, members) in enumerate(told)
    ]


def _item(at: int, item: dict[str, Any], words: Words) -> list[tuple[str, dict[str, Any]]]:
    about = {"item_id": item["id"], "output_index": at}
    first: dict[str, Any] = {**item, "status": "in_progress"}
    within: list[tuple[str, dict[str, Any]]] = []
    if item["type"] == "reasoning":
        first = {**item, "summary": []}
        first.pop("encrypted_content", None)
        within = _reasoning(about, item["summary"][0]["text"])
    elif item["type"] == "message":
        first["content"] = []
        within = _content({**about, "content_index": 0}, item["content"][0])
    else:
        first["arguments"] = ""
        name = "response.function_call_arguments"
        deltas = [] if "wholecalls" in words else pieces(item["arguments"])
        within = [(f"{name}.delta", {**about, "delta": text}) for text in deltas]
        within.append((f"{name}.done", {**about, "arguments": item["arguments"]}))
    return [
        ("response.output_item.added", {"output_index": at, "item": first}),
        *within,
        ("response.output_item.done", {"output_index": at, "item": item}),
    ]


def _reasoning(about: dict[str, Any], text: str) -> list[tuple[str, dict[str, Any]]]:
    about = {**about, "summary_index": 0}
    name = "response.reasoning_summary"
    empty, full = ({"type": "summary_text", "text": one} for one in ("", text))
    return [
        (f"{name}_part.added", {**about, "part": empty}),
        *((f"{name}_text.delta", {**about, "delta": one}) for one in pieces(text)),
        (f"{name}_text.done", {**about, "text": text}),
        (f"{name}_part.done", {**about, "part": full}),
    ]


def _content(about: dict[str, Any], part: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    member = "refusal" if part["type"] == "refusal" else "text"
    name = "response.refusal" if member == "refusal" else "response.output_text"
    return [
        ("response.content_part.added", {**about, "part": {**part, member: ""}}),
        *((f"{name}.delta", {**about, "delta": one}) for one in pieces(part[member], 4)),
        (f"{name}.done", {**about, member: part[member]}),
        ("response.content_part.done", {**about, "part": part}),
    ]


def error_frame(status: int, message: str) -> Frame:
    codes = {429: "rate_limit_exceeded", 503: "server_is_overloaded"}
    told = {"code": codes.get(status, "server_error"), "message": message}
    response = {"id": "resp_failed", "object": "response", "status": "failed", "error": told}
    return Frame({"type": "response.failed", "response": response}, "response.failed")
