"""Commands in the documentation that are marked to be run are run, in order, in one folder."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from reflexarc.cli import COMMANDS
from tests.cli.conftest import shop_session

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
MARKED = re.compile(r"<!-- run -->\n```console\n(.*?)```", re.DOTALL)
ANY = re.compile(r"^\$ (?:\.venv/bin/)?reflexarc ([\w-]+)", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def commands(page: Path) -> list[str]:
    return [
        line.removeprefix("$ ")
        for block in MARKED.findall(page.read_text("utf-8"))
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda p: p.name)
def test_marked_commands_run(page: Path, tmp_path: Path) -> None:
    lines = [json.dumps(shop_session(n)) for n in range(90)]
    (tmp_path / "sessions.jsonl").write_text("\n".join(lines))
    bin_folder = Path(sys.executable).parent
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    for command in commands(page):
        done = subprocess.run(
            shlex.split(command, comments=True), cwd=tmp_path, env={**os.environ, "PATH": path},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_readme_has_commands_to_run() -> None:
    assert len(commands(REPOSITORY / "README.md")) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_commands_exist(page: Path) -> None:
    assert set(ANY.findall(page.read_text("utf-8"))) <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert missing == []
