"""Requests of the four dialects as their providers read them: what a scripted upstream is told.

Nothing of the gateway's own conversions is used here. What a provider would refuse is refused.
"""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, cast

import msgspec


class RefusedError(Exception):
    """A request that its provider would answer with 400."""


class Called(msgspec.Struct, frozen=True):
    """A call or the result of one: `text` is its arguments or what came of it."""

    id: str
    name: str
    text: str


class Asked(msgspec.Struct):
    """One request. `words` is the text of all user turns, `calls` and `thoughts` (text, signature)
    are those of the last model turn, `results` what came after it."""

    dialect: str
    model: str
    stream: bool = False
    system: str = ""
    words: str = ""
    images: list[tuple[str, bytes]] = msgspec.field(default_factory=lambda: [])
    tools: list[str] = msgspec.field(default_factory=lambda: [])
    calls: list[Called] = msgspec.field(default_factory=lambda: [])
    results: list[Called] = msgspec.field(default_factory=lambda: [])
    thoughts: list[tuple[str, str]] = msgspec.field(default_factory=lambda: [])

    def model_turn(self) -> None:
        self.calls, self.results, self.thoughts = [], [], []

    def called(self, identity: str, name: str, arguments: Any) -> None:
        """A call; `arguments` in whichever form its dialect has."""
        _need(bool(name), "a call has a name")
        self.calls.append(Called(identity, name, arguments))

    def result(self, identity: str, text: str) -> None:
        names = {call.id: call.name for call in self.calls}
        _need(identity in names, f"a result for {identity!r}, which was not called")
        _need(identity not in [r.id for r in self.results], f"two results for {identity!r}")
        self.results.append(Called(identity, names[identity], text))

    def answered(self) -> None:
        """Checked where the user's or the model's next turn begins: no call is without result."""
        missing = {call.id for call in self.calls} - {result.id for result in self.results}
        _need(not missing, f"calls without a result: {sorted(missing)}")


def read(dialect: str, body: Any, model: str, stream: bool) -> Asked:
    """Raises `RefusedError`. `model` and `stream` are the URL's, where it tells them."""
    _need(isinstance(body, dict), "the body is no object")
    asked = Asked(
        dialect, model or str(body.get("model", "")), stream or body.get("stream") is True
    )
    _need(bool(asked.model), "no model is named")
    try:
        _READERS[dialect](asked, body)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise RefusedError(f"cannot be read: {type(error).__name__}: {error}") from error
    return asked


def _need(fits: bool, what: str) -> None:
    if not fits:
        raise RefusedError(what)


def _data_url(asked: Asked, url: str) -> None:
    head, _, data = url.partition(",")
    _need(head.startswith("data:") and head.endswith(";base64"), f"no data URL: {url[:30]}")
    _image(asked, head[5:-7], data)


def _image(asked: Asked, kind: str, data: str) -> None:
    try:
        if asked.dialect == "gemini":  # takes either alphabet
            data = to_standard(data)
        asked.images.append((kind, base64.b64decode(data, validate=True)))
    except binascii.Error as error:
        raise RefusedError(f"an image is no base64: {error}") from error


def to_standard(data: str) -> str:
    """Base64 in its usual alphabet."""
    return data.translate(str.maketrans("-_", "+/"))


def _no_more(value: dict[str, Any], known: str) -> None:
    more = set(value) - set(known.split())
    _need(not more, f"unknown members {sorted(more)}")


# --- chat ---------------------------------------------------------------------------------------


def _chat(asked: Asked, body: dict[str, Any]) -> None:
    for tool in body.get("tools", ()):
        _need(tool["type"] == "function", f"a tool of type {tool['type']}")
        _need(isinstance(tool["function"].get("parameters", {}), dict), "parameters are no object")
        asked.tools.append(tool["function"]["name"])
    _need(len(body["messages"]) > 0, "no messages")
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        if role != "tool":
            asked.answered()
        if role in ("system", "developer"):
            asked.system += _chat_text(asked, content)
        elif role == "user":
            _need(bool(content), "an empty user message")
            asked.words += _chat_text(asked, content)
        elif role == "tool":
            asked.result(message["tool_call_id"], _chat_text(asked, content))
        else:
            _need(role == "assistant", f"a message of role {role!r}")
            asked.model_turn()
            calls = message.get("tool_calls")
            _need(bool(content) or bool(calls), "an empty assistant message")
            _need(calls != [], "tool_calls is empty")
            for call in calls or ():
                _need(len(call["id"]) <= 40, "an id of more than 40 characters")
                arguments = call["function"]["arguments"]
                _need(isinstance(json.loads(arguments), dict), "arguments are no object")
                asked.called(call["id"], call["function"]["name"], arguments)
            if thought := message.get("reasoning_content") or message.get("reasoning"):
                asked.thoughts.append((thought, ""))
    asked.answered()


def _chat_text(asked: Asked, content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    said = ""
    for part in content:
        if part["type"] == "text":
            said += part["text"]
        else:
            _need(part["type"] == "image_url", f"a part of type {part['type']}")
            _data_url(asked, part["image_url"]["url"])
    return said


# --- responses ----------------------------------------------------------------------------------


def _responses(asked: Asked, body: dict[str, Any]) -> None:
    for tool in body.get("tools", ()):
        _need(tool["type"] == "function" and "function" not in tool, "a tool that is not flat")
        asked.tools.append(tool["name"])
    asked.system = body.get("instructions") or ""
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    of_model = False
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            of_model = False
            output = item["output"]
            asked.result(
                item["call_id"], output if isinstance(output, str) else _parts(asked, output)
            )
            continue
        role = item["role"] if kind == "message" else "assistant"
        if role == "assistant":
            if not of_model:
                asked.answered()
                asked.model_turn()
            of_model = True
            _response_item(asked, kind, item)
            continue
        of_model = False
        asked.answered()
        content = item["content"]
        _need(bool(content), f"an empty message of role {role}")
        said = content if isinstance(content, str) else _parts(asked, content)
        if role in ("system", "developer"):
            asked.system += said
        else:
            _need(role == "user", f"a message of role {role!r}")
            asked.words += said
    asked.answered()


def _response_item(asked: Asked, kind: str, item: dict[str, Any]) -> None:
    if kind == "function_call":
        _need(isinstance(json.loads(item["arguments"]), dict), "arguments are no object")
        _need(len(item["call_id"]) <= 64, "a call_id of more than 64 characters")
        asked.called(item["call_id"], item["name"], item["arguments"])
    elif kind == "reasoning":
        _no_more(item, "type id summary content encrypted_content status")
        text = "".join(part["text"] for part in item["summary"])
        asked.thoughts.append((text, item.get("encrypted_content") or ""))
    else:
        _need(kind == "message", f"an item of type {kind}")
        if not isinstance(item["content"], str):
            for part in item["content"]:
                _need(part["type"] in ("output_text", "refusal"), f"{part['type']} of the model")


def _parts(asked: Asked, content: Any) -> str:
    said = ""
    for part in content:
        if part["type"] == "input_image":
            _data_url(asked, part["image_url"])
        else:
            _need(part["type"] == "input_text", f"a part of type {part['type']}")
            said += part["text"]
    return said


# --- messages -----------------------------------------------------------------------------------

_MESSAGES = """model messages max_tokens system stream tools tool_choice temperature top_p top_k
stop_sequences metadata thinking service_tier output_config cache_control"""


def _messages(asked: Asked, body: dict[str, Any]) -> None:
    _no_more(body, _MESSAGES)
    _need(isinstance(body["max_tokens"], int), "max_tokens is needed")
    for tool in body.get("tools", ()):
        _need(tool["input_schema"].get("type") == "object", "input_schema is no object's")
        asked.tools.append(tool["name"])
    system = body.get("system", "")
    asked.system = system if isinstance(system, str) else "".join(part["text"] for part in system)
    last = ""
    for message in body["messages"]:
        role, content = message["role"], message["content"]
        _no_more(message, "role content")
        _need(role in ("user", "assistant"), f"a message of role {role!r}")
        last = role
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        _need(bool(blocks), "an empty message")
        if role == "assistant":
            asked.answered()
            asked.model_turn()
        said = False
        for block in blocks:
            _need(block["type"] != "tool_result" or not said, "a tool_result after other content")
            said = said or block["type"] != "tool_result"
            _block(asked, role, block)
        if role == "user":
            asked.answered()
    _need(last == "user", "the last message is not the user's")


def _block(asked: Asked, role: str, block: dict[str, Any]) -> None:
    kind = block["type"]
    if kind == "text":
        _no_more(block, "type text cache_control citations")
        _need(bool(block["text"].strip()), "a text block is empty")
        if role == "user":
            asked.words += block["text"]
    elif kind == "image":
        source = block["source"]
        _need(source["type"] == "base64", f"an image by {source['type']}")
        _image(asked, source["media_type"], source["data"])
    elif kind == "tool_use":
        _need(isinstance(block["input"], dict), "input is no object")
        asked.called(block["id"], block["name"], json.dumps(block["input"]))
    elif kind == "tool_result":
        content = block.get("content", "")
        if not isinstance(content, str):
            content = "".join(part["text"] for part in content if part["type"] == "text")
        asked.result(block["tool_use_id"], content)
    elif kind == "thinking":
        _no_more(block, "type thinking signature")
        asked.thoughts.append((block["thinking"], block["signature"]))
    else:
        raise RefusedError(f"a block of type {kind}")


# --- gemini -------------------------------------------------------------------------------------

_GEMINI = """contents systemInstruction tools toolConfig generationConfig safetySettings
cachedContent store"""


# What stands in these is the caller's own.
_AS_THEY_ARE = ("args", "response", "parametersJsonSchema", "responseJsonSchema", "parameters")


def _camel(value: Any) -> Any:
    """Google's clients write names in either form."""
    if isinstance(value, list):
        return [_camel(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    told: dict[str, Any] = {}
    for name, inner in cast("dict[str, Any]", value).items():
        first, *rest = name.split("_")
        name = first + "".join(word.title() for word in rest)
        told[name] = inner if name in _AS_THEY_ARE else _camel(inner)
    return told


def _gemini(asked: Asked, body: dict[str, Any]) -> None:
    body = _camel(body)
    _no_more(body, _GEMINI)
    for tool in body.get("tools", ()):
        _no_more(tool, "functionDeclarations")
        for declared in tool["functionDeclarations"]:
            _no_more(
                declared, "name description parameters parametersJsonSchema responseJsonSchema"
            )
            asked.tools.append(declared["name"])
    for part in body.get("systemInstruction", {"parts": []})["parts"]:
        asked.system += part["text"]
    last = ""
    for content in body["contents"]:
        _no_more(content, "role parts")
        role = content.get("role", "user")
        _need(role in ("user", "model"), f"a content of role {role!r}")
        _need(bool(content["parts"]), "a content without parts")
        if role == "model" and last != "model":  # clients keep a stream's pieces as turns
            asked.answered()
            asked.model_turn()
        last = role
        for part in content["parts"]:
            _part(asked, role, part)
        if role == "user":
            asked.answered()


def _part(asked: Asked, role: str, part: dict[str, Any]) -> None:
    _no_more(part, "text thought thoughtSignature inlineData functionCall functionResponse")
    if call := part.get("functionCall"):
        _need(isinstance(call.get("args", {}), dict), "args are no object")
        # without ids a call is the one of its place
        identity = call.get("id") or f"{len(asked.calls)}:{call['name']}"
        asked.called(identity, call["name"], json.dumps(call.get("args", {})))
        if signature := part.get("thoughtSignature"):
            asked.thoughts.append((f"call {call['name']}", signature))
    elif answer := part.get("functionResponse"):
        _need(isinstance(answer["response"], dict), "a response is no object")
        done = {result.id for result in asked.results}
        open_calls = [c for c in asked.calls if c.name == answer["name"] and c.id not in done]
        identity = answer.get("id")
        if identity not in [call.id for call in asked.calls]:
            _need(bool(open_calls), f"a functionResponse of {answer['name']}, which was not called")
            _need(identity is None, f"no call has the id {identity!r}")
            identity = open_calls[0].id
        asked.result(str(identity), json.dumps(answer["response"], ensure_ascii=False))
    elif data := part.get("inlineData"):
        _image(asked, data["mimeType"], data["data"])
    elif part.get("thought"):
        asked.thoughts.append((part["text"], part.get("thoughtSignature", "")))
    else:
        _need(isinstance(part.get("text"), str), f"a part of {sorted(part)}")
        if role == "user":
            asked.words += part["text"]
        elif signature := part.get("thoughtSignature"):
            asked.thoughts.append(("text", signature))


_READERS: dict[str, Callable[[Asked, dict[str, Any]], None]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
    "gemini": _gemini,
}
