"""`reflexarc learn` shows the certificates of calls whose free text is left open."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from reflexarc.cli import main
from tests.reflex import memos, parcels
from tests.reflex.test_in_process import chat_message, chat_tool


def _file(path: Path, sessions: list[Any]) -> str:
    lines = [
        json.dumps(
            {
                "id": session.id,
                "task": session.task,
                "model": session.model,
                "tools": [chat_tool(tool) for tool in session.tools],
                "messages": [chat_message(message) for message in session.messages],
            }
        )
        for session in sessions
    ]
    path.write_text("\n".join(lines))
    return str(path)


def test_a_reflex_with_free_text_shows_both_kinds_of_certificates(tmp_path: Path) -> None:
    given = _file(tmp_path / "memos.jsonl", memos.sessions(0, 80))
    done = CliRunner().invoke(main, ["learn", given, "-o", str(tmp_path / "memos.reflex")])
    assert done.exit_code == 0, done.output
    assert "Certificates that act: over answers" in done.output
    shown = done.output.partition("Reads whose free text is left open")[2]
    assert "partial" in shown


def test_a_reflex_without_free_text_shows_one_kind(tmp_path: Path) -> None:
    given = _file(tmp_path / "parcels.jsonl", parcels.sessions(0, 40))
    done = CliRunner().invoke(main, ["learn", given, "-o", str(tmp_path / "parcels.reflex")])
    assert done.exit_code == 0, done.output
    assert "free text" not in done.output
