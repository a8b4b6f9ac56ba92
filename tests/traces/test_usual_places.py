"""Sessions of command-line agents are found where those keep them, or where they are told to."""

from pathlib import Path

import pytest

from reflexarc.traces.formats import FORMATS
from reflexarc.traces.places import Place, usual_places


def _made(*paths: Path) -> None:
    for path in paths:
        if path.suffix:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.mkdir(parents=True)


def test_a_machine_without_agents_has_no_places(tmp_path: Path) -> None:
    assert usual_places({}, tmp_path) == []


@pytest.mark.parametrize(
    ("format", "place"),
    [
        ("claude-code", ".claude/projects"),
        ("claude-code", ".config/claude/projects"),
        ("claude-code", "Library/Application Support/Claude/local-agent-mode-sessions"),
        ("codex", ".codex/sessions"),
        ("codex", ".codex/archived_sessions"),
        ("gemini-cli", ".gemini/tmp/0a1b/chats"),
        ("opencode", ".local/share/opencode/opencode.db"),
        ("opencode", ".local/share/opencode/opencode-local.db"),
        ("opencode", ".local/share/opencode/storage/message"),
        ("opencode", ".local/share/opencode/project/x/storage/session"),
        ("goose", ".local/share/goose/sessions"),
        ("goose", "Library/Application Support/Block/goose/sessions"),
        ("goose", "AppData/Roaming/Block/goose/data/sessions"),
        ("pi", ".pi/agent/sessions"),
        ("pi", ".omp/agent/sessions"),
        ("copilot-cli", ".copilot/session-store.db"),
    ],
)
def test_each_agents_usual_place_is_found(tmp_path: Path, format: str, place: str) -> None:
    _made(tmp_path / place)
    assert usual_places({}, tmp_path) == [Place(format, tmp_path / place)]
    assert format in {one.name for one in FORMATS}


@pytest.mark.parametrize(
    ("name", "format", "inside"),
    [
        ("CODEX_HOME", "codex", "sessions"),
        ("GEMINI_CLI_HOME", "gemini-cli", ".gemini/tmp/p/chats"),
        ("XDG_DATA_HOME", "opencode", "opencode/opencode.db"),
        ("XDG_CONFIG_HOME", "claude-code", "claude/projects"),
        ("GOOSE_PATH_ROOT", "goose", "data/sessions"),
        ("PI_CODING_AGENT_DIR", "pi", "sessions"),
        ("COPILOT_HOME", "copilot-cli", "session-store.db"),
    ],
)
def test_where_the_environment_says_otherwise_it_is_looked_for_there(
    tmp_path: Path, name: str, format: str, inside: str
) -> None:
    elsewhere = tmp_path / "else"
    _made(elsewhere / inside)
    env = {name: str(elsewhere)}
    assert usual_places(env, tmp_path / "home") == [Place(format, elsewhere / inside)]
    assert usual_places({name: " "}, tmp_path / "home") == []


def test_several_folders_of_one_agent_stand_apart_by_commas(tmp_path: Path) -> None:
    _made(tmp_path / "a" / "projects", tmp_path / "b" / "projects", tmp_path / ".claude/projects")
    env = {"CLAUDE_CONFIG_DIR": f"{tmp_path}/a, {tmp_path}/b/projects,"}
    assert usual_places(env, tmp_path) == [
        Place("claude-code", tmp_path / "a" / "projects"),
        Place("claude-code", tmp_path / "b" / "projects"),
    ]
