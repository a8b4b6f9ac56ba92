"""What the core install weighs: a throwaway environment with the locked core packages and ours."""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
LIMIT_MB = 150.0


def core_size_mb() -> float:
    """Megabytes (10^6 bytes) in site-packages after installing the core: what the packages hold.
    Byte code that Python writes beside it (about a quarter more, where pip is not told
    `--no-compile`), pip itself and setuptools are not counted. Raises CalledProcessError where it
    cannot be installed."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-size-") as folder:
        target = Path(folder) / "site-packages"
        pip = [
            sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--no-compile", "--target", str(target),
        ]  # fmt: skip
        lock = REPOSITORY / "requirements" / "core.lock"
        subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        # built from a copy: building in place would leave folders in the checkout
        source = Path(folder) / "source"
        _copy_sources(source)
        subprocess.run(
            [*pip, "--no-deps", "--no-build-isolation", str(source)],
            check=True,
        )
        return sum(p.stat().st_size for p in target.rglob("*") if p.is_file()) / 1e6


def _copy_sources(target: Path) -> None:
    target.mkdir()
    names = subprocess.run(
        ["git", "ls-files", "-z", "src", "pyproject.toml", "README.md", "LICENSE"],
        cwd=REPOSITORY, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, names):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((REPOSITORY / name).read_bytes())


if __name__ == "__main__":
    size = core_size_mb()
    print(
        f"core install: {size:.1f} MB in site-packages, {LIMIT_MB:g} MB allowed "
        f"({sysconfig.get_platform()}, Python {sys.version_info[0]}.{sys.version_info[1]})"
    )
    sys.exit(size > LIMIT_MB)
