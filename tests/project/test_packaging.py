"""The lock files fit pyproject.toml, carry hashes, and name no index."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+?)(?: ; .*?)? \\$", re.MULTILINE)


def locked(name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package, version in PINNED.findall((REPOSITORY / "requirements" / name).read_text("utf-8")):
        found.setdefault(canonicalize_name(package), set()).add(version)
    return found


def asked(*groups: list[str]) -> list[Requirement]:
    return [Requirement(text) for group in groups for text in group]


CORE = PROJECT["project"]["dependencies"]
LEARN = PROJECT["project"]["optional-dependencies"]["learn"]
DEV = PROJECT["dependency-groups"]["dev"]


@pytest.mark.parametrize(
    ("lock", "wanted"), [("core.lock", asked(CORE)), ("dev.lock", asked(CORE, LEARN, DEV))]
)
def test_a_lock_holds_what_is_asked_for(lock: str, wanted: list[Requirement]) -> None:
    found = locked(lock)
    for requirement in wanted:
        versions = found.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement} is not in {lock}: run make lock"
        for version in versions:
            assert requirement.specifier.contains(version), f"{lock}: {requirement} is {version}"


def test_core_is_locked_at_the_versions_that_are_tested() -> None:
    core, dev = locked("core.lock"), locked("dev.lock")
    assert core
    for package, versions in core.items():
        assert versions <= dev[package]
    assert not {"lightgbm", "scipy", "openai", "pytest"} & set(core)


@pytest.mark.parametrize("lock", ["core.lock", "dev.lock"])
def test_every_locked_package_has_a_hash_and_no_index_is_named(lock: str) -> None:
    text = (REPOSITORY / "requirements" / lock).read_text("utf-8")
    entries = re.split(r"^(?=[A-Za-z0-9._-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PINNED.findall(text))
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(REPOSITORY / "src", source / "src", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--wheel-dir", str(tmp_path), str(source)],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    expected = {
        str(path.relative_to(source / "src"))
        for path in (source / "src" / "reflexarc").rglob("*")
        if path.is_file()
    }
    assert expected - packed == set()
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def test_python_versions_agree() -> None:
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.14"
    setup = (REPOSITORY / "scripts" / "setup.sh").read_text("utf-8")
    assert "(3, 11) <= sys.version_info[:2] <= (3, 13)" in setup
