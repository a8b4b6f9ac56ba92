"""`scripts/setup.sh` on machines that lack something: it says what, and what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[2] / "scripts" / "setup.sh"
NEEDED = ("sh", "dirname", "cat", "rm", "cksum")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout with nothing in it and a PATH with nothing on it but a shell's bare needs."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SETUP, tmp_path / "scripts" / "setup.sh")
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def python(machine: Path, name: str, version: str, *, venv: bool = True) -> None:
    """A stand-in for an interpreter: it knows its version and whether it has venv."""
    minor = int(version.split(".")[1])
    fits = "0" if 11 <= minor <= 13 else "1"
    script = f"""#!{machine}/bin/sh
case "$*" in
    *sys.exit*) exit {fits} ;;
    *ensurepip*) exit {0 if venv else 1} ;;
    *print*) echo {version} ;;
    *--version*) echo Python {version}.1 ;;
    *"-m venv"*) echo made with {version}; exit 7 ;;
esac
"""
    path = machine / "bin" / name
    path.write_text(script)
    path.chmod(0o755)


def setup(machine: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(machine / "bin" / "sh"), str(machine / "scripts" / "setup.sh")],
        env={"PATH": str(machine / "bin"), **environment},
        capture_output=True,
        text=True,
    )


def test_without_any_python_it_says_which_is_needed(machine: Path) -> None:
    done = setup(machine)
    assert done.returncode == 1
    assert "needs Python 3.11, 3.12 or 3.13" in done.stderr


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.14"])
def test_a_python_out_of_range_is_named(machine: Path, version: str) -> None:
    python(machine, "python3", version)
    done = setup(machine)
    assert done.returncode == 1
    assert f"this machine has: Python {version}.1" in done.stderr
    assert "make setup PYTHON=" in done.stderr


def test_a_missing_venv_module_is_named_with_its_package(machine: Path) -> None:
    python(machine, "python3", "3.12", venv=False)
    done = setup(machine)
    assert done.returncode == 1
    assert "its venv module is missing" in done.stderr
    assert "apt install python3.12-venv" in done.stderr
    assert not (machine / ".venv").exists()


def test_a_fitting_python_is_found_beside_one_that_does_not_fit(machine: Path) -> None:
    python(machine, "python3", "3.14")
    python(machine, "python3.13", "3.13")
    done = setup(machine)
    assert "making .venv with Python 3.13.1" in done.stdout
    assert "made with 3.13" in done.stdout


def test_a_named_python_wins_and_must_fit(machine: Path) -> None:
    python(machine, "python3.11", "3.11")
    python(machine, "mine", "3.12")
    python(machine, "old", "3.8")
    assert "made with 3.12" in setup(machine, PYTHON="mine").stdout
    done = setup(machine, PYTHON="old")
    assert done.returncode == 1
    assert "PYTHON=old is not a Python from 3.11 to 3.13" in done.stderr
