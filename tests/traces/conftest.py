"""Small hand-made sessions, and where public recordings lie."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sessions"


def line(task: str | None = None, user: str = "What is the weather?", **more: Any) -> str:
    messages = [
        {"role": "user", "content": user},
        {"role": "assistant", "content": "Sunny."},
    ]
    return json.dumps({"messages": messages, **({} if task is None else {"task": task}), **more})


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_lines(*lines: str, name: str = "sessions.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
        return path

    return write_lines


@pytest.fixture
def recordings() -> Path:
    if not RECORDINGS.is_dir():
        pytest.skip("the public recordings are not beside this checkout (../shared/data/sessions)")
    return RECORDINGS
