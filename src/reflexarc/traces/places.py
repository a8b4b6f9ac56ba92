"""Where the command-line agents that can be read keep their sessions on a machine. Nothing is read
here; a place that is not there is left out."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

MAX_FOUND = 10_000
"""Files and folders of one pattern; what is beyond is not looked for."""


class Place(msgspec.Struct, frozen=True):
    """A file or folder, and the format it is in."""

    format: str
    path: Path


def usual_places(env: Mapping[str, str], home: Path) -> list[Place]:
    """Those that there are, in the order of formats. `env` names other folders than the usual ones:
    CLAUDE_CONFIG_DIR (several, apart by commas), CODEX_HOME, GEMINI_CLI_HOME, XDG_DATA_HOME,
    XDG_CONFIG_HOME, APPDATA, GOOSE_PATH_ROOT, PI_CODING_AGENT_DIR, COPILOT_HOME."""
    found: dict[Path, Place] = {}
    for format, base, pattern in _looked_for(env, home):
        for path in _matching(base, pattern):
            found.setdefault(path, Place(format, path))
    return list(found.values())


def _looked_for(env: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path, str]]:
    config = _named(env, "XDG_CONFIG_HOME") or home / ".config"
    data = _named(env, "XDG_DATA_HOME") or home / ".local" / "share"
    application = home / "Library" / "Application Support"
    roaming = _named(env, "APPDATA") or home / "AppData" / "Roaming"
    given = [
        Path(one.strip()) for one in env.get("CLAUDE_CONFIG_DIR", "").split(",") if one.strip()
    ]
    for base in given or [home / ".claude", config / "claude"]:
        # some name the folder of projects itself
        yield "claude-code", base, "" if base.name == "projects" else "projects"
    for base in (application / "Claude", config / "Claude", roaming / "Claude"):
        yield "claude-code", base, "local-agent-mode-sessions"
    codex = _named(env, "CODEX_HOME") or home / ".codex"
    yield "codex", codex, "sessions"
    yield "codex", codex, "archived_sessions"
    yield "gemini-cli", (_named(env, "GEMINI_CLI_HOME") or home) / ".gemini", "tmp/*/chats"
    for base in (data / "opencode", application / "opencode", roaming / "opencode"):
        yield "opencode", base, "opencode*.db"
        for kind in ("session", "message", "part"):
            yield "opencode", base, f"storage/{kind}"
        yield "opencode", base, "project/*/storage/session"
    root = _named(env, "GOOSE_PATH_ROOT")
    if root is not None:
        yield "goose", root, "data/sessions"
    else:
        yield "goose", data, "goose/sessions"
        yield "goose", application, "goose/sessions"
        for base in (data, application, roaming):
            yield "goose", base, "Block/goose/sessions"
            yield "goose", base, "Block/goose/data/sessions"
    for base in (_named(env, "PI_CODING_AGENT_DIR") or home / ".pi" / "agent", home / ".omp/agent"):
        yield "pi", base, "sessions"
    yield "copilot-cli", _named(env, "COPILOT_HOME") or home / ".copilot", "session-store.db"


def _named(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name, "").strip()
    return Path(value) if value else None


def _matching(base: Path, pattern: str) -> list[Path]:
    try:
        if not pattern:
            return [base] if base.is_dir() else []
        found: list[Path] = []
        for path in base.glob(pattern):
            found.append(path)
            if len(found) == MAX_FOUND:
                break
        return sorted(found)
    except OSError:
        # a folder that one may not look into
        return []
