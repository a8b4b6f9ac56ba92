"""Requests for `generateContent` as the tests of that dialect make, read and write them."""

from typing import Any

from reflexarc.wire.converting import TurnMemory, read_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects.gemini import DIALECT
from reflexarc.wire.ids import GEMINI_IDS, IdMap
from reflexarc.wire.json import encode_json
from reflexarc.wire.losses import Losses
from reflexarc.wire.turns import (
    Ask,
    Settings,
    Text,
    Turn,
)

AT = Where("gemini-3-pro")


def read(body: dict[str, Any], where: Where = AT, memory: TurnMemory | None = None) -> Ask:
    return read_ask(DIALECT, encode_json(body), where, memory or TurnMemory())


def write(ask: Ask) -> tuple[dict[str, Any], tuple[str, ...]]:
    losses = Losses("gemini")
    return DIALECT.write_ask(ask, losses, IdMap(GEMINI_IDS)), losses.names


def asked(*turns: Turn, model: str = "gemini-2.5-flash", **settings: Any) -> Ask:
    tools = settings.pop("tools", ())
    dialect = settings.pop("dialect", "chat")
    return Ask(dialect, Settings(model=model, **settings), turns, tools)


def said(*parts: dict[str, Any], role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def called(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


def answered(name: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **more}}


HI = Turn("user", (Text("hi"),))


WHOLE: dict[str, Any] = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        said(
            {"text": "look"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {
                "fileData": {"mimeType": "video/mp4", "fileUri": "https://e.org/v"},
                "videoMetadata": {"fps": 2},
            },
            role="user",
        ),
        said(
            {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
            {"text": "so", "thoughtSignature": "c2ln"},
            {
                "functionCall": {"id": "a1", "name": "look", "args": {"b": 1, "a": None}},
                "thoughtSignature": "c2ln",
            },
            called("look"),
        ),
        said(
            answered("look", {"result": "42"}, id="a1"),
            answered(
                "look",
                {"error": {"why": "gone"}},
                parts=[{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                scheduling="SILENT",
            ),
            {"text": "and now?"},
            role="user",
        ),
        said(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK"}, "thoughtSignature": "c2ln"},
            {"text": "", "thoughtSignature": "bGF0ZQ=="},
            {"thoughtSignature": "YmFyZQ=="},
        ),
    ],
    "tools": [
        {
            "functionDeclarations": [
                {"name": "look", "parameters": {"type": "OBJECT", "nullable": True}},
                {"name": "see", "parametersJsonSchema": {"$ref": "#/$defs/a"}, "behavior": "X"},
                {"name": "bare", "description": "d"},
            ]
        },
        {"googleSearch": {}},
        {"codeExecution": {}},
    ],
    "toolConfig": {
        "functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["look", "see"]},
        "retrievalConfig": {"languageCode": "en"},
    },
    "generationConfig": {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 40,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "candidateCount": 2,
        "seed": 7,
        "presencePenalty": 0.1,
        "frequencyPenalty": -0.1,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object"},
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
        "responseModalities": ["TEXT"],
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "cachedContent": "cachedContents/1",
    "serviceTier": "standard",
    "store": False,
    "labels": {"a": "b"},
}
