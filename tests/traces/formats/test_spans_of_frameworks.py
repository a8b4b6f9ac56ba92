"""Spans of frameworks that have names of their own for prompts, answers and tools."""

import json
from pathlib import Path

from reflexarc.steps.prompt import Prompt
from tests.traces.formats.test_otlp import batch, chat, read, span, write


def test_a_framework_s_own_names_tell_prompt_answer_and_tools(tmp_path: Path) -> None:
    outer = span(1, of={"ai.operationId": "ai.generateText", "ai.usage.promptTokens": 30})
    call = {"toolCallId": "c1", "toolName": "look", "args": "{}"}
    own = {
        "ai.prompt.messages": json.dumps([{"role": "user", "content": "hi"}]),
        "ai.prompt.tools": json.dumps([{"name": "look"}]),
        "ai.response.text": "So.",
        "ai.response.toolCalls": json.dumps([call]),
    }
    used = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look", "ai.toolCall.id": "c1"}
    spans = [outer, chat(2, 1, 30, 3, of=own), span(3, 1, at_s=2, of=used)]
    (request,) = read(write(tmp_path / "a.json", batch(spans))).requests
    assert (request.counts.prompt.value, request.output_text) == (30, "So.")
    assert [(one.name, one.own_s.value) for one in request.tools] == [("look", 1)]
    assert isinstance(request.prompt, Prompt)
    assert [piece.kind for piece in request.prompt.pieces] == ["tool", "message"]
    assert request.prompt.complete
