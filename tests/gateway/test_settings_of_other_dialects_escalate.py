"""A request that its own API would refuse, or with more to it than is understood, is System 2's."""

from typing import Any

import pytest

from reflexarc.gateway.admission_ask import admit_ask
from reflexarc.wire.dialect import Where
from reflexarc.wire.dialects import dialect
from reflexarc.wire.turns import Ask

TOOL: dict[str, Any] = {
    "messages": {"name": "get", "input_schema": {"type": "object"}},
    "responses": {"type": "function", "name": "get", "parameters": {"type": "object"}},
    "gemini": {"functionDeclarations": [{"name": "get"}]},
}


def refusal(name: str, **given: Any) -> str | None:
    usual: dict[str, Any] = {"model": "m", "tools": [TOOL[name]]}
    if name == "messages":
        usual["max_tokens"] = 99
    body = {k: v for k, v in {**usual, **given}.items() if v is not None}
    head = dialect(name).read_head(body, Where("m"))
    return admit_ask(Ask(name, head.settings, (), head.tools)).refusal


def calling(**more: Any) -> dict[str, Any]:
    return {"functionCallingConfig": {"mode": "auto", **more}}


@pytest.mark.parametrize(
    ("name", "given", "refused"),
    [
        ("messages", {}, None),
        ("messages", {"max_tokens": None}, "field:max_tokens"),
        ("messages", {"temperature": 1}, None),
        ("messages", {"temperature": 1.5}, "field:temperature"),
        ("messages", {"context_management": {"edits": []}}, "field:context_management"),
        ("messages", {"mcp_servers": [{"url": "x"}]}, "field:mcp_servers"),
        ("messages", {"tool_choice": {"type": "auto", "odd": 1}}, "field:tool_choice"),
        ("responses", {}, None),
        ("responses", {"temperature": 1.5}, None),
        ("responses", {"store": True}, None),
        ("responses", {"background": True}, "field:background"),
        ("responses", {"previous_response_id": "r"}, "field:previous_response_id"),
        ("responses", {"conversation": "c"}, "field:conversation"),
        ("responses", {"prompt": {"id": "p"}}, "field:prompt"),
        ("responses", {"max_tool_calls": 1}, "field:max_tool_calls"),
        ("responses", {"include": ["message.output_text.logprobs"]}, "field:include"),
        ("responses", {"text": {"format": {"type": "odd"}}}, "field:text"),
        ("gemini", {"toolConfig": calling()}, None),
        ("gemini", {"toolConfig": calling(streamFunctionCallArguments=True)}, "field:tool_choice"),
        ("gemini", {"toolConfig": calling(allowedFunctionNames=["get"])}, "field:tool_choice"),
        ("gemini", {"store": True}, "field:store"),
        ("gemini", {"cachedContent": "c"}, "field:cachedContent"),
        ("gemini", {"generationConfig": {"candidateCount": 2}}, "field:n"),
        (
            "gemini",
            {"generationConfig": {"responseModalities": ["AUDIO"]}},
            "field:generationConfig.responseModalities",
        ),
        ("gemini", {"generationConfig": {"responseLogprobs": True}},
         "field:generationConfig.responseLogprobs"),
    ],
)  # fmt: skip
def test_it_is_told_by_its_field(name: str, given: dict[str, Any], refused: str | None) -> None:
    assert refusal(name, **given) == refused
