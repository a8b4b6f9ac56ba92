"""The project keeps its own rules: layout, size, what it says of itself, what serving loads."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reflexarc.cli import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPOSITORY / "src").rglob("*.py"))
MAX_LINES = 400


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=REPOSITORY, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("this is not a git checkout")
    return [REPOSITORY / name for name in listed.stdout.split("\0") if name]


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(REPOSITORY))
        for path in SOURCES
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []


def test_no_module_is_longer_than_it_should_be() -> None:
    lengths = {
        str(path.relative_to(REPOSITORY)): len(path.read_text("utf-8").splitlines())
        for path in SOURCES
    }
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_nothing_is_called_utils_or_helpers() -> None:
    vague = {"utils", "util", "common", "helpers", "helper", "core", "misc"}
    parts = {
        part for path in SOURCES for part in path.relative_to(REPOSITORY).with_suffix("").parts
    }
    assert parts & vague == set()


def test_the_project_speaks_of_itself_alone() -> None:
    """No paths of a machine it was built on, no hosts of package indexes, no tracker numbers."""
    strangers = re.compile(
        r"(?<![\w.])/work/|(?<![\w.])/root/|pypi\.org|pythonhosted|\bissue #?\d|--index-url",
        re.IGNORECASE,
    )
    text = {".py", ".md", ".toml", ".lock", ".sh", ".json", ".sql", ".yml", ""}
    found = [
        f"{path.relative_to(REPOSITORY)}: {match.group()}"
        for path in tracked()
        if path.suffix in text and path != Path(__file__).resolve() and path.is_file()
        for match in strangers.finditer(path.read_text("utf-8"))
    ]
    assert found == []


def test_serving_loads_nothing_that_only_learning_needs() -> None:
    program = (
        "import sys\n"
        "import reflexarc.cli.serve, reflexarc.gateway.worker, reflexarc.reflex\n"
        "print(sorted({'lightgbm', 'scipy', 'openai', 'pytest'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"


def test_the_command_knows_every_module_of_the_command_line() -> None:
    named = {module for module, _ in COMMANDS.values()}
    modules = {path.stem for path in (REPOSITORY / "src/reflexarc/cli").glob("*.py")}
    others = {
        "__init__",
        "agreement",
        "certificates",
        "gateways",
        "key_options",
        "reflex_life",
        "tables",
        "trial_show",
        "waste_show",
    }
    assert modules - others == named


def test_the_pages_of_results_say_what_the_results_say() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acceptance.report", "--check"],
        cwd=REPOSITORY, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0
