"""What prompts hold by reference is bounded; counts go on where prompts are left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reflexarc.traces import references
from reflexarc.traces.logs import Logs
from tests.traces.formats.measures import totals

TURNS = 6


def chat() -> list[dict[str, Any]]:
    return [
        {"role": role, "content": f"{role} {turn} <returncode>0"}
        for turn in range(TURNS)
        for role in ("user", "assistant")
    ]


def pydantic() -> list[dict[str, Any]]:
    return [
        {"kind": kind, "parts": [{"part_kind": part, "content": f"{turn}"}], "run_id": f"r{turn}"}
        for turn in range(TURNS)
        for kind, part in (("request", "user-prompt"), ("response", "text"))
    ]


def openhands() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for turn in range(2 * TURNS):
        role = "assistant" if turn % 2 else "user"
        found.append(
            {
                "id": f"e{turn}",
                "kind": "MessageEvent",
                "timestamp": "2026-01-01T00:00:00",
                "source": "agent" if turn % 2 else "user",
                "llm_message": {"role": role, "content": [{"text": f"{turn}"}]},
                "llm_response_id": f"r{turn}" if turn % 2 else None,
            }
        )
    return found


def classic() -> list[dict[str, Any]]:
    return [
        {"id": turn, "source": source, "action": "message", "args": {"content": f"{turn}"}}
        for turn in range(TURNS)
        for source in ("user", "agent")
    ]


LOGS = {
    "s.jsonl": {"task": "t", "messages": chat()},
    "a.traj.json": chat(),
    "a.traj": {"history": chat(), "trajectory": [], "info": {}},
    "messages.json": pydantic(),
    "trajectory.json": openhands(),
    "old.json": classic(),
}


@pytest.mark.parametrize("name", LOGS)
def test_prompts_beyond_the_bound_are_left_out_and_said_to_be(
    tmp_path: Path, read: Callable[..., Logs], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(LOGS[name]))
    whole = read(path)
    assert all(one.prompt is not None for one in whole.requests)
    monkeypatch.setattr(references, "MAX_REFERENCES", 12)
    cut = read(path)
    assert totals(cut.requests)["requests"] == TURNS
    assert 0 < sum(one.prompt is not None for one in cut.requests) < TURNS
    if name in ("s.jsonl", "a.traj.json"):
        assert totals(cut.requests) == totals(whole.requests)
    assert references.LEFT_OUT in cut.files[0].notes
