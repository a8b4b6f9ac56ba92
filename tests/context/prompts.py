"""Requests of several dialects, and the prompts they are made of."""

import base64
import json
import struct
import zlib
from typing import Any

from reflexarc.steps.prompt import Prompt
from reflexarc.wire.json import split_object
from reflexarc.wire.pieces import pieces_of

Body = dict[str, Any]


def prompt(body: Body | bytes, dialect: str = "messages") -> Prompt:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Prompt(pieces_of(dialect, split_object(raw)))


def tool(name: str, **properties: Any) -> Body:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": f"Does {name}.", "input_schema": schema}


def turn(at: int) -> list[Body]:
    """What the model did, and what came of it."""
    call = {"type": "tool_use", "id": f"toolu_{at}", "name": "read", "input": {"b": at, "a": "x"}}
    text = f"line {chr(97 + at % 26)} " * 20
    result = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def request(turns: int = 3, **more: Any) -> Body:
    """A conversation with a tool, in the form of Anthropic's API."""
    messages = [{"role": "user", "content": "Find the fault."}]
    for at in range(turns):
        messages += turn(at)
    body = {
        "model": "claude-opus-4-5",
        "max_tokens": 1000,
        "system": "You mend programs.\nToday is 2026-12-01 09:59:58.\nBe brief.",
        "tools": [tool("read", path={"type": "string"}), tool("write", n={"maximum": 1})],
        "messages": messages,
    }
    return {**body, **more}


def png(width: int, height: int, level: int = 9) -> str:
    """Base64 of a picture, in one of several encodings."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    rows = b"".join(b"\0" + bytes((x * y) % 256 for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, level)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()
