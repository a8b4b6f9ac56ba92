"""The OpenAI client for Node: `node/cases.mjs` in a process of its own, its cases as cells here."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from acceptance.wire_cells import (
    TOOL,
    Case,
    Client,
    Place,
    WrongError,
    picture_url,
    tag,
    told_picture,
)
from acceptance.wire_upstream import KEY, MODEL, SAID, THOUGHT

_FOLDER = Path(__file__).parent / "node"
_LONGEST_S = 120.0


def missing() -> str | None:
    """What keeps the client from being run here; None where nothing does."""
    if shutil.which("node") is None:
        return "node is not on PATH"
    if not (_FOLDER / "node_modules" / "openai").is_dir():
        return "its packages are not installed: make setup-node"
    return None


def clients() -> list[Client]:
    """One for chat completions, one for responses."""
    return _clients("chat", "responses")


def plain_clients() -> list[Client]:
    """The same before a model that says what it likes."""
    return _clients("chat, plain", "responses, plain")


def tool_clients() -> list[Client]:
    """Their cases that call tools."""
    return _clients("chat, tools", "responses, tools")


def _clients(*kinds: str) -> list[Client]:
    listed: dict[str, list[str]] = json.loads(_node("--list"))
    return [Client(f"openai for Node, {kind}", _Ran(kind).cases(listed[kind])) for kind in kinds]


class _Ran:
    """All cases of one kind, run at once at the first that is asked for at a place."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._errors: dict[tuple[str, str | None], dict[str, str | None]] = {}

    def cases(self, names: list[str]) -> dict[str, Case]:
        return {name: self._case(name) for name in names}

    def _case(self, name: str) -> Case:
        def tried(place: Place) -> None:
            where = place.base, place.faults
            if where not in self._errors:
                self._errors[where] = self._run(place)
            error = self._errors[where].get(name, "it was not run")
            if error is not None:
                raise WrongError(error)

        return tried

    def _run(self, place: Place) -> dict[str, str | None]:
        given: dict[str, Any] = {
            "base": place.base,
            "dialect": place.dialect,
            "kind": self._kind,
            "key": KEY,
            "model": MODEL,
            "said": SAID,
            "thought": THOUGHT,
            "tool": TOOL,
            "picture": picture_url(),
            "told_picture": told_picture(),
            "cities": place.cities(2),
            "tag": tag(),
        }
        if place.faults is not None:
            given["words"] = {name: place.words(name) for name in ("[parallel]", "[think]")}
        told = [json.loads(line) for line in _node(given=json.dumps(given)).splitlines()]
        return {one["case"]: one["error"] for one in told}


def _node(*arguments: str, given: str = "") -> str:
    done = subprocess.run(
        ["node", "cases.mjs", *arguments], cwd=_FOLDER, input=given, capture_output=True,
        text=True, timeout=_LONGEST_S,
    )  # fmt: skip
    if done.returncode:
        raise WrongError(f"node ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout
