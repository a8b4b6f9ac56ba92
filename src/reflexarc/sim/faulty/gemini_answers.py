"""Answers of Gemini as the fault upstream tells them: one object, or one in each chunk."""

import json
from typing import Any

from reflexarc.sim.faulty.script import Asked, Frame, Said, Words, inner, pieces

_FINISHES = {"end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}


def read(body: dict[str, Any], model: str, *, stream: bool) -> Asked:
    config = inner(body, "toolConfig", "functionCallingConfig")
    thinking = inner(body, "generationConfig", "thinkingConfig")
    allowed: list[str] = config.get("allowedFunctionNames") or []
    asked = Asked(
        model,
        stream,
        thinking=thinking.get("includeThoughts") is True,
        forced=config.get("mode") == "ANY",
        only=allowed[0] if len(allowed) == 1 else "",
    )
    for tool in body.get("tools", []):
        for one in tool.get("functionDeclarations", []):
            schema = inner(one, "parametersJsonSchema") or inner(one, "parameters")
            asked.tools.append((one["name"], schema))
    for content in body["contents"]:
        if content.get("role") == "model":
            continue
        parts = content["parts"]
        for part in parts:
            if "functionResponse" in part:
                asked.results.append(_result(part["functionResponse"]["response"]))
        said = "\n".join(part["text"] for part in parts if "text" in part)
        if said:
            asked.text, asked.results = said, []
        asked.images = sum("inlineData" in part or "fileData" in part for part in parts)
    return asked


def _result(response: dict[str, Any]) -> str:
    for name in ("result", "output", "error"):
        if list(response) == [name]:
            return str(response[name])
    return json.dumps(response, separators=(",", ":"))


def usage(said: Said) -> dict[str, Any]:
    return {
        "promptTokenCount": said.input,
        "cachedContentTokenCount": said.cached,
        "candidatesTokenCount": said.output - said.reasoning,
        "thoughtsTokenCount": said.reasoning,
        "totalTokenCount": said.input + said.output,
    }


def _body(said: Said, parts: list[Any], finish: str | None, *, counted: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    body: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": said.model,
        "responseId": said.id,
    }
    if counted and said.told_usage:
        body["usageMetadata"] = usage(said)
    return body


def _calls(said: Said, words: Words) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for at, call in enumerate(said.calls):
        made: dict[str, Any] = {"name": call.name, "args": json.loads(call.arguments)}
        if "ids" in words:
            made = {"id": call.id, **made}
        part: dict[str, Any] = {"functionCall": made}
        if at == 0 and said.signature:
            part["thoughtSignature"] = said.signature
        parts.append(part)
    return parts


def whole(said: Said, words: Words) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if said.thinking:
        parts.append({"text": said.thinking, "thought": True})
    if said.text or said.refusal:
        parts.append({"text": said.text or said.refusal})
        if said.thinking and not said.calls:
            parts[-1]["thoughtSignature"] = said.signature
    parts += _calls(said, words)
    finish = None if "nofinish" in words else _FINISHES[said.stop]
    return _body(said, parts, finish, counted=True)


def frames(said: Said, asked: Asked, words: Words) -> list[Frame]:
    del asked
    told = [[{"text": text, "thought": True}] for text in pieces(said.thinking)]
    told += [[{"text": text}] for text in pieces(said.text or said.refusal, 4)]
    calls = _calls(said, words)
    told += [calls] if "twoinone" in words and calls else [[call] for call in calls]
    out = [_body(said, parts, None, counted=True) for parts in told]
    if "nofinish" not in words and "nodone" not in words:
        last: list[Any] = [{"text": ""}]
        if said.thinking and not said.calls:
            last[0]["thoughtSignature"] = said.signature
        out.append(_body(said, last, _FINISHES[said.stop], counted=True))
    return [Frame(body) for body in out]


def error(status: int, message: str, retry_s: float | None, param: str | None) -> dict[str, Any]:
    statuses = {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }
    told: dict[str, Any] = {
        "code": status,
        "message": message,
        "status": statuses.get(status, "UNKNOWN"),
    }
    details: list[dict[str, Any]] = []
    if retry_s is not None:
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        details.append({"@type": kind, "retryDelay": f"{retry_s:g}s"})
    if param is not None:
        kind = "type.googleapis.com/google.rpc.BadRequest"
        violation = {"field": param, "description": message}
        details.append({"@type": kind, "fieldViolations": [violation]})
    if details:
        told["details"] = details
    return {"error": told}


def error_frame(status: int, message: str) -> Frame:
    return Frame(error(status, message, None, None))
