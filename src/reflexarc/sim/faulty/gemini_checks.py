"""What Gemini's `generateContent` refuses of a request."""

import base64
import binascii
import re
from typing import Any, cast

from reflexarc.sim.faulty.responses_checks import Signed
from reflexarc.sim.faulty.shapes import (
    a_list,
    a_number,
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
    "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent"
    " serviceTier store labels model"
)
_CONFIG = named(
    "temperature topP topK maxOutputTokens candidateCount stopSequences seed presencePenalty"
    " frequencyPenalty responseMimeType responseSchema responseJsonSchema responseModalities"
    " responseLogprobs logprobs thinkingConfig mediaResolution speechConfig imageConfig"
    " enableEnhancedCivicAnswers"
)
_NAMES = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
_BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
UNCHECKED = "skip_thought_signature_validator"
"""A signature that says there is none to be had."""


_DATA_WITHIN = {"args", "response", "parametersJsonSchema", "responseJsonSchema", "parameters"}
_ALPHABET = str.maketrans("-_", "+/")


def spelt(value: Any) -> Any:
    """A request with its members in camelCase: proto3 JSON takes `snake_case` too, and Google's own
    client writes both. What is the caller's data stays as it is."""
    if isinstance(value, list):
        return [spelt(inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    told: dict[str, Any] = {}
    for name, inner in cast("dict[str, Any]", value).items():
        first, *rest = name.split("_")
        camel = first + "".join(word.title() for word in rest)
        if camel in told:
            raise refuse("is given twice, in two spellings", camel)
        told[camel] = inner if camel in _DATA_WITHIN else spelt(inner)
    return told


def check(body: dict[str, Any], signed: Signed) -> None:
    """Raises `RequestError`."""
    only(body, _MEMBERS, "")
    contents = a_list(body.get("contents"), "contents", least=1)
    if "systemInstruction" in body:
        held = only(body["systemInstruction"], {"role", "parts"}, "systemInstruction")
        for at, one in enumerate(a_list(held.get("parts"), "systemInstruction.parts", least=1)):
            only(one, {"text"}, f"systemInstruction.parts[{at}]")
    names: set[str] = set()
    for at, tool in enumerate(a_list(body.get("tools", []), "tools")):
        _tool(tool, f"tools[{at}]", names)
    _choice(body.get("toolConfig"), names)
    _config(only(body.get("generationConfig", {}), _CONFIG, "generationConfig"))
    _conversation(contents, signed)


def _conversation(contents: list[Any], signed: Signed) -> None:
    waiting: list[dict[str, Any]] = []
    for at, value in enumerate(contents):
        path = f"contents[{at}]"
        content = only(value, {"role", "parts"}, path)
        role = content.get("role", "user")
        one_of(role, {"user", "model", "function"}, f"{path}.role")
        parts = a_list(content.get("parts"), f"{path}.parts", least=1)
        kinds = [_part(one, f"{path}.parts[{n}]", signed) for n, one in enumerate(parts)]
        answers = [one["functionResponse"] for one in parts if "functionResponse" in one]
        if len(answers) != len(waiting):
            raise refuse(
                "the number of function response parts must be that of the function call parts"
                f" before it: {len(waiting)}",
                path,
            )
        for call, answer in zip(waiting, answers, strict=True):
            if answer.get("name") != call.get("name") or answer.get("id") != call.get("id"):
                raise refuse(f"expected the response of {call.get('name')}", path)
        calls = [one for one in parts if "functionCall" in one]
        waiting = [one["functionCall"] for one in calls]
        if calls and role != "model":
            raise refuse("function calls belong to the model", path)
        if calls and at and contents[at - 1].get("role") == "model":
            raise refuse("a function call turn must follow a user's or a response's", path)
        if calls and "thoughtSignature" not in calls[0]:
            raise refuse("function call is missing a thought_signature", f"{path}.parts")
        if "functionResponse" in kinds and role == "model":
            raise refuse("function responses do not belong to the model", path)
    if waiting:
        raise refuse("the last turn has function calls without responses", "contents")


def _part(value: Any, path: str, signed: Signed) -> str:
    part = only(value, {*_DATA, *_BESIDE}, path)
    held = [name for name in _DATA if name in part]
    if len(held) != 1:
        raise refuse(f"must hold exactly one of {', '.join(_DATA)}", path)
    (kind,) = held
    signature = part.get("thoughtSignature")
    if signature is not None:
        _signature(signature, f"{path}.thoughtSignature", signed)
    inner = part[kind]
    if kind == "text":
        a_text(inner, f"{path}.text")
    elif kind == "inlineData":
        blob = only(inner, {"mimeType", "data", "displayName"}, f"{path}.inlineData")
        a_text(blob.get("mimeType"), f"{path}.inlineData.mimeType", least=3)
        a_text(blob.get("data"), f"{path}.inlineData.data", least=1)
    elif kind == "fileData":
        only(inner, {"mimeType", "fileUri", "displayName"}, f"{path}.fileData")
    elif kind == "functionCall":
        call = only(inner, {"id", "name", "args"}, f"{path}.functionCall")
        fits(call.get("name"), _NAMES, f"{path}.functionCall.name")
        an_object(call.get("args", {}), f"{path}.functionCall.args")
    elif kind == "functionResponse":
        members = {"id", "name", "response", "parts", "willContinue", "scheduling"}
        answer = only(inner, members, f"{path}.functionResponse")
        fits(answer.get("name"), _NAMES, f"{path}.functionResponse.name")
        an_object(answer.get("response"), f"{path}.functionResponse.response")
    return kind


def _signature(value: Any, path: str, signed: Signed) -> None:
    text = a_text(value, path, least=1)
    if text == UNCHECKED:
        return
    try:
        text = text.translate(_ALPHABET)  # bytes are taken in either alphabet
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise refuse("is not base64", path) from None
    if not signed(text):
        raise refuse("thought signature is not valid", path)


def _tool(value: Any, path: str, names: set[str]) -> None:
    tool = an_object(value, path)
    for at, one in enumerate(a_list(tool.get("functionDeclarations", []), path)):
        where = f"{path}.functionDeclarations[{at}]"
        members = "name description parameters parametersJsonSchema response responseJsonSchema"
        declared = only(one, [*members.split(), "behavior"], where)
        name = fits(declared.get("name"), _NAMES, f"{where}.name")
        if name in names:
            raise refuse("duplicate function declaration", f"{where}.name")
        names.add(name)
        if "parameters" in declared and "parametersJsonSchema" in declared:
            raise refuse("is not to be given beside parametersJsonSchema", f"{where}.parameters")
        if "parametersJsonSchema" in declared:
            an_object(declared["parametersJsonSchema"], f"{where}.parametersJsonSchema")


def _choice(value: Any, names: set[str]) -> None:
    if value is None:
        return
    held = an_object(value, "toolConfig").get("functionCallingConfig")
    if held is None:
        return
    path = "toolConfig.functionCallingConfig"
    config = only(held, {"mode", "allowedFunctionNames", "streamFunctionCallArguments"}, path)
    one_of(config.get("mode"), {"AUTO", "ANY", "NONE", "VALIDATED"}, f"{path}.mode")
    allowed = a_list(config.get("allowedFunctionNames", []), f"{path}.allowedFunctionNames")
    if allowed and config["mode"] not in ("ANY", "VALIDATED"):
        raise refuse("is only for ANY and VALIDATED", f"{path}.allowedFunctionNames")
    for one in allowed:
        one_of(one, names, f"{path}.allowedFunctionNames")


def _config(config: dict[str, Any]) -> None:
    path = "generationConfig"
    if "temperature" in config:
        a_number(config["temperature"], f"{path}.temperature", 0, 2)
    if "topP" in config:
        a_number(config["topP"], f"{path}.topP", 0, 1)
    if "maxOutputTokens" in config:
        a_whole(config["maxOutputTokens"], f"{path}.maxOutputTokens", 1)
    if len(a_list(config.get("stopSequences", []), f"{path}.stopSequences")) > 5:
        raise refuse("must be 5 at most", f"{path}.stopSequences")
    if "responseSchema" in config or "responseJsonSchema" in config:
        one_of(
            config.get("responseMimeType"),
            {"application/json", "text/x.enum"},
            f"{path}.responseMimeType",
        )
    if "thinkingConfig" in config:
        members = {"includeThoughts", "thinkingBudget", "thinkingLevel"}
        thinking = only(config["thinkingConfig"], members, f"{path}.thinkingConfig")
        if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
            raise refuse("only one of budget and level can be set", f"{path}.thinkingConfig")
